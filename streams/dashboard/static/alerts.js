// The list of alerts: what is in it and in which order, and what waits while somebody reads.
import { announce } from "./announcing.js";
import { get, problem } from "./asking.js";
import { card } from "./card.js";
import { regroup } from "./crowds.js";
import { $ } from "./dom.js";
import { known } from "./known.js";
import { teachable } from "./teach.js";
import { FIELDS, query, wanted } from "./wanted.js";
import { plural } from "./words.js";

const PAGE = 100; // older alerts fetched at a time
let kept = 300; // cards in the list; whoever asks for older ones keeps as many more
let page = { alerts: [], total: 0, standing: 0 }; // as last fetched
let waiting = []; // new alerts held back while somebody reads further down
let ended = false; // no older alert is kept than those in the list

function cardOf(one, old = null) {
  const made = card(one, known.clusters, old, known.labels());
  teachable(made, one.alert);
  return made;
}

export function group() { regroup($("list"), Boolean(wanted.cluster)); }

// What moves the list by itself, and so waits for whoever reads in it.
export function settle() {
  if (reading()) return;
  group();
  $("ask").hidden = !document.querySelector("#list > .asked");
}

function find(id) { return $("list").querySelector(`:scope > [data-id="${CSS.escape(id)}"]`); }

export function takeAlerts(shown) {
  const fresh = [];
  let placedAnew = false;
  for (const one of shown) {
    const made = find(one.alert.alert_id), held = waiting.findIndex((w) => w.alert.alert_id === one.alert.alert_id);
    if (made) {
      const crowd = made.dataset.crowd;
      if (Number(made.dataset.revision) < one.alert.revision) placedAnew = cardOf(one, made).dataset.crowd !== crowd || placedAnew;
    } else if (held >= 0) {
      if (one.fits !== false) waiting[held] = one;
      else waiting.splice(held, 1);
    } else if (one.fits !== false) fresh.push(one);
  }
  if (placedAnew) settle();
  page.total += fresh.length;
  page.standing += fresh.length;
  if (!fresh.length) return drawWaiting();
  if (reading()) waiting.push(...fresh);
  else insert(fresh, true);
  announce(fresh);
  drawWaiting();
}

// Is somebody reading further down, standing on a card, pointing at its buttons, or asked about one? Then the list must
// not move under them: a click would be on another card.
function reading() {
  return document.querySelector("#list .verdicts:hover") || $("list").contains(document.activeElement) || document.querySelector(":is(#who, #which)[open]") || document.querySelector(".feed").scrollTop > 60 || (scrollY > 140 && innerWidth < 1181);
}

function last(list, what) { return [...list.querySelectorAll(`:scope > ${what}`)].at(-1); }

function insert(shown, fresh) {
  const list = $("list");
  for (const one of [...shown].sort((a, b) => a.rank - b.rank)) {
    const made = cardOf(one);
    if (fresh) made.classList.add("fresh");
    const below = [...list.children].find((other) => Number(other.dataset.place ?? other.dataset.rank) < one.rank);
    if (below || list.children.length < kept) list.insertBefore(made, below ?? null);
  }
  while (list.children.length > kept) {
    (last(list, ".crowded") ?? list.lastElementChild).remove(); // a crowd gives way first
    ended = false;
  }
  group();
  $("empty").hidden = list.children.length > 0;
  counted();
}

// All of them anew, as they were fetched.
export function drawAlerts(alerts) {
  page = alerts;
  waiting = [];
  const held = $("list").contains(document.activeElement) && document.activeElement.closest(".card")?.dataset.id;
  ended = false;
  $("list").replaceChildren(...page.alerts.map((one) => cardOf(one, find(one.alert.alert_id))));
  group();
  if (held) find(held)?.focus({ preventScroll: true });
  const any = page.alerts.length > 0, filtered = FIELDS.some((f) => wanted[f]);
  $("empty").hidden = any || Boolean(wanted.search);
  $("empty").textContent = filtered ? "No alert fits these filters. New ones that do will appear here." : "No alert yet. They appear here as posts come in.";
  counted();
  drawWaiting();
}

// Posts that stand, by the table beside the list where that counts the same; null where a filter asks for more.
function standing() {
  if (["lang", "source", "cluster", "priority", "area", "q"].some((f) => wanted[f])) return null;
  const fits = ([query]) => (!wanted.kind || query.startsWith(`${wanted.kind}.`)) && (!wanted.category || query.endsWith(`.${wanted.category}`));
  const counts = Object.entries(known.state.stats.open).filter(fits).map(([, n]) => n);
  const of = (n) => (wanted.level ? n[wanted.level] ?? 0 : (n.alert ?? 0) + (n.suggestion ?? 0));
  if (wanted.category && counts.some((n) => n.also)) return null; // of those beside others the page knows no level
  return counts.reduce((sum, n) => sum + of(n), 0);
}

export function counted() {
  const total = standing() ?? page.standing, { alert = 0, suggestion = 0 } = known.state.stats.totals;
  $("count").textContent = total ? plural(total, "post stands", "posts stand") : "";
  $("count").title = `Of ${plural(alert + suggestion, "post", "posts")} with an alert or suggestion so far; the others were withdrawn, or are older than what is kept here.`;
  $("older").hidden = ended || Boolean(wanted.search) || $("list").children.length >= page.total - waiting.length || !$("list").children.length;
}

// After somebody said something: what the table does not count by a filter is asked for.
export async function recount() {
  if (standing() === null) page.standing = (await get(`/api/alerts?${query(FIELDS, { n: 1 })}`)).standing;
  counted();
}

export function drawWaiting() {
  waiting.sort((a, b) => b.rank - a.rank);
  $("more-news").hidden = !waiting.length || Boolean(wanted.search);
  $("more-news").textContent = `↑ ${plural(waiting.length, "new alert", "new alerts")}`;
}

export function showWaiting() {
  if (!waiting.length) return;
  insert(waiting.splice(0), true);
  drawWaiting();
  document.querySelector(".feed").scrollTo({ top: 0 });
  scrollTo({ top: 0 });
  $("list").firstElementChild?.focus();
}

export async function older() {
  const last = Math.min(...[...$("list").children].map((made) => Number(made.dataset.rank)));
  try {
    const answer = await get(`/api/alerts?${query(FIELDS, { before: last, n: PAGE })}`);
    kept = Math.max(kept, $("list").children.length + answer.alerts.length);
    insert(answer.alerts, false);
    ended = answer.alerts.length < PAGE;
    counted();
  } catch (error) { problem(`Older alerts could not be fetched: ${error.message}`); }
}
