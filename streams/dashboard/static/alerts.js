// The list of alerts: what is in it and in which order, and what waits while somebody reads.
import { announce } from "./announcing.js";
import { get, problem } from "./asking.js";
import { card } from "./card.js";
import { learn } from "./clusters.js";
import { regroup } from "./crowds.js";
import { $, say } from "./dom.js";
import { known } from "./known.js";
import { teachable } from "./teach.js";
import { FIELDS, query, wanted } from "./wanted.js";
import { plural } from "./words.js";

const PAGE = 100, MOST = 500; // alerts fetched at a time: older ones; at the most
const RECOUNT_MS = 10_000;
let kept = 300; // cards in the list; whoever asks for older ones keeps as many more
let page = { alerts: [], total: 0, standing: 0 }; // as last fetched
let waiting = []; // new alerts held back while somebody reads further down, as many as the list holds
let news = 0; // how many came since somebody began to read, those too that `waiting` has no room for
let highest = 0; // the rank of the newest that came: what is told of others is no new alert
let stirred = false; // something came since it was counted what stands
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
  letGo();
  group();
  $("ask").hidden = !document.querySelector("#list > .asked");
}

function find(id) { return $("list").querySelector(`:scope > [data-id="${CSS.escape(id)}"]`); }

export function takeAlerts(shown) {
  const fresh = [], again = []; // new ones; others that fit now
  const oldest = $("older").hidden ? 0 : lowest(); // older ones come by that button
  let placedAnew = false;
  stirred ||= shown.length > 0;
  for (const one of shown) {
    const made = find(one.alert.alert_id), held = waiting.findIndex((w) => w.alert.alert_id === one.alert.alert_id);
    if (made) {
      const crowd = made.dataset.crowd;
      if (Number(made.dataset.revision) < one.alert.revision) placedAnew = cardOf(one, made).dataset.crowd !== crowd || placedAnew;
    } else if (held >= 0) {
      if (one.fits !== false) waiting[held] = one;
      else {
        waiting.splice(held, 1);
        news--;
      }
    } else if (one.fits !== false && one.rank > highest) fresh.push(one);
    else if (one.fits !== false && one.rank > oldest) again.push(one);
  }
  if (placedAnew) settle();
  page.total += fresh.length;
  page.standing += fresh.length;
  highest = Math.max(highest, ...fresh.map((one) => one.rank));
  if (fresh.length || again.length) {
    if (reading()) {
      waiting.push(...fresh, ...again);
      news += fresh.length;
    } else insert([...fresh, ...again], true);
  }
  if (fresh.length) announce(fresh);
  drawWaiting();
}

// Is somebody reading further down, standing on a card, pointing at its buttons, or asked about one? Then the list must
// not move under them: a click would be on another card.
function reading() {
  return document.querySelector("#list .verdicts:hover") || $("list").contains(document.activeElement) || document.querySelector(":is(#who, #which, #over)[open]") || document.querySelector(".feed").scrollTop > 60 || (scrollY > 140 && innerWidth < 1181);
}

// How many to ask for: as many as there are; under a reader also those that came before them.
export const most = () => (reading() ? MOST : Math.max(PAGE, Math.min(MOST, $("list").children.length)));

const lowest = () => Math.min(...[...$("list").children].map((made) => Number(made.dataset.rank)));

function insert(shown, fresh) {
  const list = $("list");
  if (fresh) letGo();
  for (const one of [...shown].sort((a, b) => a.rank - b.rank)) {
    const here = find(one.alert.alert_id), made = cardOf(one, here);
    if (here) continue;
    if (fresh) made.classList.add("fresh");
    const below = [...list.children].find((other) => Number(other.dataset.place ?? other.dataset.rank) < one.rank);
    if (below || list.children.length < kept) list.insertBefore(made, below ?? null);
  }
  const crowded = [...list.querySelectorAll(":scope > .crowded")];
  while (list.children.length > kept) {
    (crowded.pop() ?? list.lastElementChild).remove(); // a crowd gives way first
    ended = false;
  }
  group();
  $("empty").hidden = list.children.length > 0;
  counted();
}

// What was fetched. anew: another list, for another filter; else it is brought up to date, under whoever reads in it too.
export function drawAlerts(alerts, anew = true) {
  const restarted = processOf(alerts) !== processOf(page); // ranks are others then
  learn(alerts.clusters);
  page = alerts;
  highest = Math.max(0, ...page.alerts.map((one) => one.rank));
  ended = false;
  waiting = [];
  if (!anew && reading() && $("list").children.length) keepUp(restarted);
  else replaceAll();
  news = waiting.length;
  const any = page.alerts.length > 0, filtered = FIELDS.some((f) => wanted[f]);
  $("empty").hidden = any || Boolean(wanted.search);
  $("empty").textContent = filtered ? "No alert fits these filters. New ones that do will appear here." : "No alert yet. They appear here as posts come in.";
  counted();
  drawWaiting();
}

function replaceAll() {
  const held = $("list").contains(document.activeElement) && document.activeElement.closest(".card")?.dataset.id;
  $("list").replaceChildren(...page.alerts.map((one) => cardOf(one, find(one.alert.alert_id))));
  group();
  if (held) find(held)?.focus({ preventScroll: true });
}

const processOf = (alerts) => alerts.event_id?.split("-")[0];

// What is in the list stays where it is, as it was fetched; what else came waits. A card among those fetched that was not
// was withdrawn, or gave way to others of its crowd: it goes, at once where nobody sees it. Those below go on.
function keepUp(restarted) {
  const told = new Map(page.alerts.map((one) => [one.alert.alert_id, one])), all = page.alerts.length >= page.total;
  const cards = [...$("list").children], last = cards.findLastIndex((made) => told.has(made.dataset.id));
  const below = Math.min(...page.alerts.map((one) => one.rank)) - 0.5;
  let rank = highest;
  cards.forEach((made, place) => {
    const one = told.get(made.dataset.id), further = place > last && !all;
    if (one) {
      cardOf(one, made);
      ({ rank } = one);
      told.delete(made.dataset.id);
    } else if (further ? restarted : looked(made)) {
      made.classList.add("unsure");
      made.dataset.rank = further ? below : rank;
      if (all) { // what was deleted is read by nobody any more
        made.classList.add("withdrawn");
        say(made.querySelector(".text"), "No longer among these alerts.");
      }
    } else if (!further) made.remove();
  });
  if (!cards.some((made) => made.isConnected)) return replaceAll();
  const oldest = lowest();
  waiting = [...told.values()].filter((one) => one.rank > oldest);
}

function looked(made) {
  const { top, bottom } = made.getBoundingClientRect();
  return made.contains(document.activeElement) || (bottom > 0 && top < innerHeight);
}

// Those that wait go on as their cluster does.
export function waitingMerged({ cluster_id: gone, into }) {
  for (const one of waiting) if (one.alert.cluster_id === gone) one.alert.cluster_id = into;
}

function letGo() { for (const made of document.querySelectorAll("#list > .unsure")) made.remove(); }

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

// What the table does not count by a filter is asked for: after somebody said something, and as others come and go.
export async function recount() {
  const filter = query();
  if (standing() === null) {
    const answer = await get(`/api/alerts?${query(FIELDS, { n: 1 })}`).catch(() => null); // that nothing comes is told elsewhere
    if (filter !== query()) return;
    if (answer) Object.assign(page, { standing: answer.standing, total: answer.total });
    else stirred = true; // then with the next look
  }
  counted();
}

setInterval(() => {
  if (!stirred || document.hidden || wanted.search) return;
  stirred = false;
  recount();
}, RECOUNT_MS);

export function drawWaiting() {
  bound();
  const n = Math.max(waiting.length, news);
  $("more-news").hidden = !waiting.length || Boolean(wanted.search);
  $("more-news").textContent = `↑ ${plural(n, "new alert", "new alerts")}`;
}

// What waits is as many as the list holds: the newest, but before them the newest of each crowd.
function bound() {
  if (waiting.length > kept) {
    const crowds = new Set(), first = [], others = [];
    for (const one of waiting.toSorted((a, b) => b.rank - a.rank)) {
      const crowd = one.alert.cluster_id && `${one.alert.cluster_id} ${one.alert.query_id}`;
      (crowd && crowds.has(crowd) ? others : first).push(one);
      crowds.add(crowd);
    }
    waiting = [...first, ...others].slice(0, kept);
  }
}

export function showWaiting() {
  if (!waiting.length) return;
  insert(waiting.splice(0), true);
  news = 0;
  drawWaiting();
  toTop();
  $("list").firstElementChild?.focus();
}

export function toTop() {
  document.querySelector(".feed").scrollTo({ top: 0 });
  if ($("list").getBoundingClientRect().top < 0) scrollTo({ top: 0 });
}

export async function older() {
  try {
    const answer = await get(`/api/alerts?${query(FIELDS, { before: Math.ceil(lowest()), n: PAGE })}`);
    kept = Math.max(kept, $("list").children.length + answer.alerts.length);
    learn(answer.clusters);
    insert(answer.alerts, false);
    ended = answer.alerts.length < PAGE;
    counted();
  } catch (error) { problem(`Older alerts could not be fetched: ${error.message}`); }
}
