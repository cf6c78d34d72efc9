// The page's life: what is wanted (in the address), what came (server-sent events), keys and clicks.
import { $, bars, card, categories, cluster, el, figures, hit, moved, pipeline, placed, proposals, regroup, repeated } from "./draw.js";
import "./draft.js";
import { asked as ask, judge, taught, teachable, undo, VERDICTS } from "./teach.js";
import { ago, duration, language, number, plural, rate } from "./words.js";

const FIELDS = ["kind", "category", "level", "lang", "source", "cluster", "priority", "q"];
const PAGE = 100; // older alerts fetched at a time
let kept = 300; // cards in the list; whoever asks for older ones keeps as many more
const data = JSON.parse($("data").textContent);

let wanted = fromAddress();
let state = data.state;
let page = data.alerts;
let clusters = new Map();
let eventId = page.event_id;
let events = null;
let waiting = []; // new alerts held back while somebody reads further down
let ended = false; // no older alert is kept than those in the list
let asked = 0; // counts requests, so that a late answer to an old question is dropped

// --- address
function fromAddress() {
  const params = new URLSearchParams(location.search);
  return Object.fromEntries([...FIELDS, "search"].map((f) => [f, params.get(f) ?? ""]));
}

function query(fields = FIELDS, more = {}) {
  const params = new URLSearchParams(more);
  for (const f of fields) if (wanted[f]) params.set(f, wanted[f]);
  return params.toString();
}

function want(patch, replace = false) {
  wanted = { ...wanted, ...patch };
  const params = query([...FIELDS, "search"]);
  history[replace ? "replaceState" : "pushState"](null, "", params ? `?${params}` : location.pathname);
  apply();
}

async function apply() {
  choices();
  figuresAndSides();
  const searched = search();
  await fetchAlerts();
  await searched;
}

// --- fetching
async function get(path) {
  const answer = await fetch(path, { headers: { Accept: "application/json" } });
  if (answer.status === 401) location.reload();
  if (!answer.ok) throw new Error((await answer.text()).trim() || answer.statusText);
  return answer.json();
}

async function fetchAlerts() {
  const question = ++asked;
  try {
    const answer = await get(`/api/alerts?${query()}`);
    if (question !== asked) return;
    page = answer;
    waiting = [];
    eventId = page.event_id;
    drawAlerts();
    listen();
  } catch (error) { problem(`The alerts could not be fetched: ${error.message}`); }
}

let resyncing = null;
function resync() {
  resyncing ??= setTimeout(async () => {
    resyncing = null;
    try {
      takeState(await get("/api/state"));
      await fetchAlerts();
    } catch (error) {
      problem(`The state could not be fetched: ${error.message}`);
      if (events?.readyState === EventSource.CLOSED) setTimeout(resync, 3000); // nothing else would ask again
    }
  }, 500);
}

function takeState(next) {
  state = next;
  clusters = new Map(state.clusters.map((c) => [c.cluster_id, c]));
  figuresAndSides();
}

// --- live events
function listen() {
  events?.close();
  events = new EventSource(`/events?${query(FIELDS, { since: eventId })}`);
  events.onerror = () => {
    if (Date.now() - heard <= SILENT_MS) linked("reconnecting …"); // later the line tells for how long
    if (events.readyState === EventSource.CLOSED) setTimeout(resync, 3000);
  };
  events.addEventListener("resync", resync);
  events.addEventListener("stats", (event) => {
    const stats = JSON.parse(event.data);
    if (stats.taught !== state.stats.taught) lessons();
    state.history = [...state.history.slice(1), stats.posts_per_s];
    state.stats = stats;
    for (const [post, n] of Object.entries(stats.repeats)) {
      for (const made of $("list").children) if (made.dataset.post === post) repeated(made, n);
    }
    linked("live");
    figuresAndSides();
  });
  events.addEventListener("live", (event) => {
    const news = JSON.parse(event.data);
    eventId = event.lastEventId;
    for (const c of news.clusters) {
      if (c.event === "merge" || c.event === "expire") clusters.delete(c.cluster_id);
      else clusters.set(c.cluster_id, c);
    }
    if (news.clusters.length) {
      drawClusters();
      const changed = new Set(news.clusters.map((c) => c.cluster_id));
      for (const made of $("list").children) {
        const id = made.querySelector(".in-cluster").dataset.value;
        if (changed.has(id)) placed(made, id, clusters);
      }
    }
    takeAlerts(news.alerts);
  });
}

let heard = Date.now(); // when the dashboard last sent figures: a connection that opens and stays silent says nothing
const SILENT_MS = 4000; // figures come every second, and after 2 s where Redis is frozen; with a look each half second, told within 5

function linked(how) {
  if (how === "live") heard = Date.now();
  const health = state.stats.health ?? { level: "live", sentence: "live" };
  $("link").dataset.state = how === "live" ? "live" : "lost"; // the connection; what it tells of has a colour of its own
  $("link").dataset.health = how === "live" ? health.level : "down";
  const text = how === "live" ? `${health.sentence} · ${rate(state.stats.posts_per_s)} posts/s` : how;
  if ($("link-text").textContent !== text) $("link-text").textContent = text;
  if (how === "live" && $("link-say").textContent !== health.sentence) $("link-say").textContent = health.sentence; // without the rate: it would be read out every second
}

// The page's own word, whatever died: the dashboard, the network, this machine's sleep.
setInterval(() => {
  const silent = Date.now() - heard, gone = silent > SILENT_MS;
  document.body.classList.toggle("stale", gone);
  if (gone) linked(`no figures for ${duration(1000 * Math.floor(silent / 1000))}`);
  $("stale").hidden = !gone; // its words stay as they are: they are read out once
}, 500);

function problem(text) {
  if ($("problem").textContent !== text) $("problem").textContent = text;
  $("problem").hidden = !text;
}

// --- teaching
async function lessons() {
  try {
    const all = await get("/api/taught"), cards = [...$("list").children];
    taught(all, cards, state.categories);
    ask(all.ask, cards);
    settle();
  } catch (error) { problem(`What was taught could not be fetched: ${error.message}`); }
}

async function teach(made, verdict) {
  try {
    if (!await judge(made, verdict, state.categories)) return;
    const on = document.activeElement, all = cards(), next = all[all.indexOf(made) + 1] ?? made;
    if (made.classList.contains("judged")) made.classList.remove("whole");
    group(); // what is moved loses the focus
    const face = made.classList.contains("crowded") && cards().find((one) => one.matches(":not(.judged)") && one.dataset.crowd === made.dataset.crowd);
    if (on === made) stand(face || next); // of a crowd all are judged before it goes on
    else if (made.contains(on)) on.focus({ preventScroll: true });
  } catch (error) { problem(`Not taught: ${error.message}`); }
}

// --- alerts
function cardOf(one, old = null) {
  const made = card(one, clusters, old, new Map(state.categories.map((c) => [c.category, c.label])));
  teachable(made, one.alert);
  return made;
}

function group() { regroup($("list"), Boolean(wanted.cluster)); }

// What moves the list by itself, and so waits for whoever reads in it.
function settle() {
  if (reading()) return;
  group();
  $("ask").hidden = !document.querySelector("#list > .asked");
}

function find(id) { return $("list").querySelector(`:scope > [data-id="${CSS.escape(id)}"]`); }

function takeAlerts(shown) {
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

function drawAlerts() {
  const held = $("list").contains(document.activeElement) && document.activeElement.closest(".card")?.dataset.id;
  ended = false;
  $("list").replaceChildren(...page.alerts.map((one) => cardOf(one, find(one.alert.alert_id))));
  group();
  if (held) find(held)?.focus({ preventScroll: true });
  const any = page.alerts.length > 0, filtered = FIELDS.some((f) => wanted[f]);
  $("empty").hidden = any || Boolean(wanted.search);
  $("empty").textContent = filtered ? "No alert fits these filters. New ones that do will appear here." : "No alert yet. They appear here as posts come in.";
  problem(state.stats.problem === "starting" ? "" : state.stats.problem);
  counted();
  drawWaiting();
}

// Posts that stand, by the table beside the list where that counts the same; null where a filter asks for more.
function standing() {
  if (["lang", "source", "cluster", "priority", "q"].some((f) => wanted[f])) return null;
  const fits = ([query]) => (!wanted.kind || query.startsWith(`${wanted.kind}.`)) && (!wanted.category || query.endsWith(`.${wanted.category}`));
  const counts = Object.entries(state.stats.open).filter(fits).map(([, n]) => n);
  const of = (n) => (wanted.level ? n[wanted.level] ?? 0 : (n.alert ?? 0) + (n.suggestion ?? 0));
  if (wanted.category && counts.some((n) => n.also)) return null; // of those beside others the page knows no level
  return counts.reduce((sum, n) => sum + of(n), 0);
}

function counted() {
  const total = standing() ?? page.total, { alert = 0, suggestion = 0 } = state.stats.totals;
  $("count").textContent = total ? plural(total, "post stands", "posts stand") : "";
  $("count").title = `Of ${plural(alert + suggestion, "post", "posts")} with an alert or suggestion so far; the others were withdrawn, or are older than what is kept here.`;
  $("older").hidden = ended || Boolean(wanted.search) || $("list").children.length >= page.total - waiting.length || !$("list").children.length;
}

function drawWaiting() {
  waiting.sort((a, b) => b.rank - a.rank);
  $("more-news").hidden = !waiting.length || Boolean(wanted.search);
  $("more-news").textContent = `↑ ${plural(waiting.length, "new alert", "new alerts")}`;
}

function showWaiting() {
  insert(waiting.splice(0), true);
  drawWaiting();
  document.querySelector(".feed").scrollTo({ top: 0 });
  scrollTo({ top: 0 });
  $("list").firstElementChild?.focus();
}

async function older() {
  const last = Math.min(...[...$("list").children].map((made) => Number(made.dataset.rank)));
  try {
    const answer = await get(`/api/alerts?${query(FIELDS, { before: last, n: PAGE })}`);
    kept = Math.max(kept, $("list").children.length + answer.alerts.length);
    insert(answer.alerts, false);
    ended = answer.alerts.length < PAGE;
    counted();
  } catch (error) { problem(`Older alerts could not be fetched: ${error.message}`); }
}

let unsaid = [], saying = null;
function announce(fresh) {
  unsaid.push(...fresh);
  saying ??= setTimeout(() => {
    const of = (kind) => unsaid.filter((one) => one.alert.kind === kind).length, newest = unsaid.at(-1).alert;
    const needs = of("need"), offers = of("offer"), notices = unsaid.length - needs - offers, urgent = unsaid.filter((one) => one.alert.priority === "urgent").length;
    $("say").textContent = `${plural(unsaid.length, "new alert", "new alerts")}: ${plural(needs, "need", "needs")}, ${plural(offers, "offer", "offers")}${notices ? `, ${plural(notices, "warning or report", "warnings and reports")}` : ""}${urgent ? `; ${number(urgent)} urgent` : ""}. Newest: ${newest.kind}, ${newest.label}.`;
    unsaid = [];
    saying = null;
  }, 6000);
}

// --- everything beside the list
function figuresAndSides() {
  figures(state.stats, state.history);
  const labels = new Map(state.categories.map((c) => [c.category, c.label]));
  categories(state.categories, state.stats.open, wanted);
  counted();
  pipeline(state.stats);
  proposals(state.stats.proposals);
  bars("langs", state.stats.langs, "lang", language, wanted);
  bars("sources", state.stats.sources, "source", (s) => s, wanted);
  $("cluster-count").textContent = state.stats.clusters ? `of ${number(state.stats.clusters)}` : "";
  if (state.stats.problem !== "starting") problem(state.stats.problem);
  drawClusters(labels);
}

let drawn = "";
const asks = (c) => Object.keys(c.categories ?? {}).length > 0; // somebody in it needs, offers or warns
const rush = (c) => (c.burst >= 3 ? c.burst : 0); // board.BURST: less is chance, then the biggest come first
function drawClusters(labels = new Map(state.categories.map((c) => [c.category, c.label]))) {
  const query = wanted.category && wanted.kind ? `${wanted.kind}.${wanted.category}` : "";
  const fits = (c) => (!wanted.lang || wanted.lang in (c.languages ?? {})) && (!wanted.source || wanted.source in (c.sources ?? {}))
    && (!(wanted.kind || wanted.category) || Object.keys(c.categories ?? {}).some((q) => q === query || (!query && (q.startsWith(`${wanted.kind}.`) || q.endsWith(`.${wanted.category}`)))));
  const shown = [...clusters.values()].filter((c) => c.posts > 1 && fits(c))
    .sort((a, b) => (b.cluster_id === wanted.cluster) - (a.cluster_id === wanted.cluster) || asks(b) - asks(a) || rush(b) - rush(a) || b.posts - a.posts).slice(0, 12);
  const key = JSON.stringify([shown.map((c) => [c.cluster_id, c.version]), wanted.cluster, labels.size]);
  $("no-clusters").hidden = shown.length > 0;
  if (key === drawn || $("clusters").contains(document.activeElement)) return;
  drawn = key;
  const open = new Set([...$("clusters").querySelectorAll("details[open]")].map((d) => d.closest(".cluster").dataset.id));
  $("clusters").replaceChildren(...shown.map((c) => cluster(c, wanted, labels, open.has(c.cluster_id))));
}

// Chips, pressed buttons, the text field: all from `wanted`.
function choices() {
  const labels = new Map(state.categories.map((c) => [c.category, c.label]));
  const name = { kind: (v) => `${v}s`, category: (v) => labels.get(v) ?? v, level: (v) => `${v}s`, lang: language, source: (v) => v, cluster: (v) => `cluster: ${clusters.get(v)?.label || v}`, priority: (v) => v, q: (v) => `contains “${v}”` };
  const set = FIELDS.filter((f) => wanted[f]);
  $("chips").hidden = !set.length;
  $("chips").replaceChildren(...set.map((f) => {
    const chip = el("button"), text = el("bdi", "", name[f](wanted[f]));
    chip.type = "button";
    chip.dataset.set = f;
    chip.dataset.value = wanted[f];
    chip.setAttribute("aria-label", `Remove filter ${f}: ${text.textContent}`);
    chip.append(text, el("span", "", "×"));
    return chip;
  }), ...(set.length > 1 ? [Object.assign(el("button", "", "Clear all"), { type: "button", id: "clear" })] : []));
  for (const button of document.querySelectorAll('.levels button, thead [data-set="kind"]')) {
    const { set: field, value } = button.dataset;
    button.setAttribute("aria-pressed", String(wanted[field] === value && !(field === "kind" && wanted.category)));
  }
  if (document.activeElement !== $("q")) $("q").value = wanted.q;
  if (document.activeElement !== $("search-text")) $("search-text").value = wanted.search;
}

// --- search
async function search() {
  const text = wanted.search, open = Boolean(text);
  $("hits-panel").hidden = !open;
  $("list").hidden = open;
  drawWaiting();
  counted();
  if (!open) return;
  $("empty").hidden = true;
  $("hits-title").textContent = `Posts like “${text}”`;
  $("hits-note").textContent = "Searching …";
  $("hits").replaceChildren();
  try {
    const found = await get(`/api/search?${new URLSearchParams({ text, k: 30, ...(wanted.lang ? { lang: wanted.lang } : {}) })}`);
    if (wanted.search !== text) return;
    const standing = document.activeElement === $("search-text");
    $("hits").replaceChildren(...found.hits.map(hit));
    if (standing && found.hits.length) $("hits").firstElementChild.focus({ preventScroll: true }); // j and k go on from there
    $("hits-note").textContent = `${plural(found.hits.length, "post", "posts")} of ${number(found.searched)}, nearest in meaning first${wanted.lang ? `, in ${language(wanted.lang)} only` : ""}.${found.complete ? "" : " Older posts are still being read in."}`;
  } catch (error) { $("hits-note").textContent = `Search failed: ${error.message}`; }
}

// --- clicks and keys
document.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-set]");
  if (!button) return;
  const { set: field, value, kind } = button.dataset;
  if (field === "cell") {
    const same = wanted.category === value && wanted.kind === kind;
    want(same ? { category: "", kind: "" } : { category: value, kind });
  } else if (field === "category" && button.closest("tbody")) {
    want(wanted.category === value && !wanted.kind ? { category: "" } : { category: value, kind: "" });
  } else if (field === "kind" && button.closest("thead")) {
    want(wanted.kind === value && !wanted.category ? { kind: "" } : { kind: value, category: "" });
  } else {
    want({ [field]: wanted[field] === value ? "" : value });
  }
  if (button.closest(".needs, .growing, .bars")) tab("alerts");
});

function tab(name) {
  document.body.dataset.tab = name;
  for (const button of document.querySelectorAll(".tabs button")) button.setAttribute("aria-pressed", String(button.dataset.show === name));
}

function theme() {
  const now = getComputedStyle(document.documentElement).colorScheme, dark = now === "dark" || (now !== "light" && !matchMedia("(prefers-color-scheme: light)").matches);
  document.documentElement.dataset.theme = dark ? "light" : "dark";
  try { localStorage.setItem("theme", dark ? "light" : "dark"); } catch { /* private window: it lasts as long as the page */ }
}

function clear() { want({ ...Object.fromEntries(FIELDS.map((f) => [f, ""])), search: "" }); }

function cards() { return [...$(wanted.search ? "hits" : "list").children].filter((made) => made.checkVisibility()); }

// Which words moved an alert somebody looks at: asked once for each state of it.
async function asksWhy(made) {
  const { id, revision } = made.dataset, state = `${id} ${revision}`;
  if (made.dataset.asked === state || made.classList.contains("withdrawn")) return;
  made.dataset.asked = state;
  try {
    const found = await get(`/api/words?alert=${encodeURIComponent(id)}`);
    if (found.problem) throw new Error(found.problem);
    if (made.dataset.asked === state && made.dataset.revision === revision) moved(made, found.moved);
  } catch (error) {
    delete made.dataset.asked;
    made.querySelector(".moved").textContent = `which words moved it cannot be said: ${error.message}`;
  }
}

function unfold(made) {
  if (made.classList.toggle("whole") && made.parentElement === $("list")) asksWhy(made);
  if (made.parentElement === $("list")) group();
}

function move(step) {
  const all = cards(), at = all.indexOf(document.activeElement?.closest?.(".card"));
  stand(all[at < 0 ? 0 : Math.max(0, Math.min(all.length - 1, at + step))]);
}

function stand(made) {
  made?.focus({ preventScroll: true });
  made?.scrollIntoView({ block: "center" });
}

const KEYS = { // r, w, o and n judge the card somebody stands on: teach.js
  j: () => move(1),
  k: () => move(-1),
  p: () => document.activeElement.closest?.(".card")?.querySelector("a[href]")?.click(),
  "/": () => $("search-text").select(),
  f: () => $("q").select(),
  g: () => waiting.length && showWaiting(),
  x: clear,
  t: theme,
  "?": () => $("help").showModal(),
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  const field = event.target.closest("input, textarea, select");
  if (event.key === "Escape") {
    if (wanted.search) want({ search: "" });
    else if (field === $("q") && wanted.q) { $("q").value = ""; want({ q: "" }); }
    document.activeElement.blur();
    return;
  }
  if (field || event.target.closest("form")) return;
  if (event.key === "Enter" && event.target.matches(".card")) unfold(event.target);
  else if (VERDICTS[event.key] && document.activeElement.matches("#list > .card:not(.withdrawn)")) {
    event.preventDefault();
    teach(document.activeElement, VERDICTS[event.key][0]);
  } else if (KEYS[event.key]) {
    event.preventDefault();
    KEYS[event.key]();
  }
});

$("list").addEventListener("click", (event) => {
  const verdict = event.target.closest("[data-verdict]");
  if (verdict) teach(verdict.closest(".card"), verdict.dataset.verdict);
  const opens = event.target.closest(".text, .card.judged:not(.whole)");
  if (opens && !event.target.closest("button, a") && !String(getSelection())) unfold(opens.closest(".card"));
  if (event.target.closest(".weaker")) unfold(event.target.closest(".card"));
  if (event.target.closest(".crowd")) {
    event.target.closest(".card").classList.toggle("open");
    group();
  }
});
$("list").addEventListener("focusout", () => setTimeout(settle)); // once it is known where the focus went
$("lessons").addEventListener("click", async (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  try {
    await undo(button.dataset);
    await lessons();
  } catch (error) { problem(`Not taken back: ${error.message}`); }
});
$("ask").addEventListener("click", () => {
  stand(document.querySelector("#list > .card.asked"));
});
$("search").addEventListener("submit", (event) => {
  event.preventDefault();
  tab("alerts");
  want({ search: $("search-text").value.trim() });
});
let typing = null;
$("q").addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(() => want({ q: $("q").value.trim() }, true), 250);
});
$("close-search").addEventListener("click", () => want({ search: "" }));
$("chips").addEventListener("click", (event) => event.target.closest("#clear") && clear());
$("more-news").addEventListener("click", showWaiting);
$("older").addEventListener("click", older);
$("theme").addEventListener("click", theme);
$("help-button").addEventListener("click", () => $("help").showModal());
document.querySelector(".tabs").addEventListener("click", (event) => {
  const button = event.target.closest("[data-show]");
  if (button) { tab(button.dataset.show); scrollTo({ top: 0 }); }
});
addEventListener("popstate", () => {
  const before = query([...FIELDS, "search"]);
  wanted = fromAddress();
  if (query([...FIELDS, "search"]) !== before) apply(); // the skip link changes the address too
});
setInterval(() => { for (const time of document.querySelectorAll("time[data-ms]")) time.textContent = ago(Number(time.dataset.ms)); }, 5000);

try { document.documentElement.dataset.theme = localStorage.getItem("theme") ?? ""; } catch { /* see theme() */ }
takeState(state);
choices();
drawAlerts();
if (innerWidth <= 860) document.querySelector(".pipe").open = true; // there it has a tab of its own
search();
listen();
lessons();
