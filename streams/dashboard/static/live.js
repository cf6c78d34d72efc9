// What comes by itself: alerts, clusters and figures as server-sent events, and how the connection fares.
import { drawAlerts, most, takeAlerts, toTop, waitingMerged } from "./alerts.js";
import { get, problem } from "./asking.js";
import { drawBeside } from "./beside.js";
import { placed, repeated } from "./card.js";
import { drawClusters, merged } from "./clusters.js";
import { $, say } from "./dom.js";
import { known } from "./known.js";
import { lessons } from "./lessons.js";
import { mapNews } from "./map.js";
import { FIELDS, query } from "./wanted.js";
import { clock, duration, rate } from "./words.js";

let eventId = "";
let events = null;
let asked = 0; // counts requests, so that a late answer to an old question is dropped
let listed = query(); // the filter that the list is of
let failed = false; // it was told that something could not be fetched
let full = false; // it was told that events were refused
const AGAIN_MS = 2000, AGAIN_MOST_MS = 10_000;

// Ask until it is answered, or something else is asked. Meanwhile a list of another filter is seen to be old, and nothing comes
// into it.
export async function fetchAlerts() {
  const question = ++asked, filter = query(), other = filter !== listed, list = $("list");
  if (other) events?.close();
  list.ariaBusy = String(other);
  for (let again_ms = AGAIN_MS; ; again_ms = Math.min(again_ms + AGAIN_MS, AGAIN_MOST_MS)) {
    const answer = await get(`/api/alerts?${other ? filter : query(FIELDS, { n: most() })}`).catch((error) => ({ error }));
    if (question !== asked) return;
    if (!answer.error) {
      if (failed) problem("");
      failed = false;
      return draw(filter, answer, other);
    }
    if (again_ms === AGAIN_MS) {
      failed = true;
      problem(`The alerts could not be fetched: ${answer.error.message}`);
      if (!(answer.error instanceof TypeError) && (other || !list.children.length)) refused(filter); // the network is not it
    }
    await new Promise((then) => setTimeout(then, again_ms));
    if (question !== asked) return;
  }
}

function draw(filter, answer, other) {
  listed = filter;
  $("list").ariaBusy = "false";
  drawAlerts(answer, other);
  if (other) toTop();
  listen(answer.event_id);
}

// The dashboard answers, and not with alerts: nothing is shown rather than what fits another filter.
function refused(filter) {
  draw(filter, { alerts: [], total: 0, standing: 0, event_id: eventId }, true);
  say($("empty"), "What fits these filters could not be fetched.");
}

let resyncing = null;
function resync() {
  resyncing ??= setTimeout(async () => {
    resyncing = null;
    try {
      known.take(await get("/api/state"));
      drawBeside();
      await fetchAlerts();
      mapNews();
    } catch (error) {
      failed = true;
      problem(`The state could not be fetched: ${error.message}`);
      setTimeout(resync, 3000); // nothing else would ask again
    }
  }, 500);
}

export function listen(since) {
  eventId = since;
  events?.close();
  events = new EventSource(`/events?${query(FIELDS, { since: eventId })}`);
  events.onerror = () => {
    if (Date.now() - heard <= SILENT_MS) linked("reconnecting …"); // later the line tells for how long
    if (events.readyState !== EventSource.CLOSED) return;
    why(events.url).then((refusal) => {
      if (refusal) problem(refusal);
      full ||= Boolean(refusal);
    }, () => {}); // that nothing answers is told elsewhere
    setTimeout(resync, 3000);
  };
  events.addEventListener("resync", resync);
  events.addEventListener("stats", (event) => {
    const stats = JSON.parse(event.data);
    off = clock(stats.at);
    if (full) problem("");
    full = false;
    if (stats.taught !== known.state.stats.taught) { lessons(); mapNews(); }
    known.state.history = [...known.state.history.slice(1), stats.posts_per_s];
    known.state.stats = stats;
    for (const [post, n] of Object.entries(stats.repeats)) {
      for (const made of $("list").children) if (made.dataset.post === post) repeated(made, n);
    }
    linked("live");
    drawBeside();
  });
  events.addEventListener("live", (event) => {
    const news = JSON.parse(event.data);
    eventId = event.lastEventId;
    for (const c of news.clusters) {
      if (c.event === "merge" || c.event === "expire") known.clusters.delete(c.cluster_id);
      else known.clusters.set(c.cluster_id, c);
    }
    for (const c of news.clusters.filter((one) => one.event === "merge" && one.into)) {
      merged(c);
      waitingMerged(c);
    }
    if (news.clusters.length) {
      drawClusters();
      const changed = new Set(news.clusters.map((c) => c.cluster_id));
      for (const made of $("list").children) {
        const id = made.querySelector(".in-cluster").dataset.value;
        if (changed.has(id)) placed(made, id, known.clusters);
      }
    }
    takeAlerts(news.alerts);
    if (news.alerts.length) mapNews();
  });
}

// Why events were refused, which an EventSource cannot read; "" where they are not.
async function why(url) {
  const answer = await fetch(url);
  if (answer.status === 429) return (await answer.text()).trim();
  await answer.body?.cancel();
  return "";
}

let heard = Date.now(); // when the dashboard last sent figures: a connection that opens and stays silent says nothing
let off = ""; // how far this machine's clock is off
const SILENT_MS = 4000; // figures come every second, and after 2 s where Redis is frozen; with a look each half second, told within 5

function linked(how) {
  if (how === "live") heard = Date.now();
  const health = known.state.stats.health ?? { level: "live", sentence: "live" };
  $("link").dataset.state = how === "live" ? "live" : "lost"; // the connection; what it tells of has a colour of its own
  $("link").dataset.health = how === "live" ? health.level : "down";
  const text = how === "live" ? `${health.sentence} · ${rate(known.state.stats.posts_per_s)} posts/s${off && ` · ${off}`}` : how;
  if ($("link-text").textContent !== text) $("link-text").textContent = $("link-text").title = text;
  if (how === "live" && $("link-say").textContent !== health.sentence) $("link-say").textContent = health.sentence; // without the rate: it would be read out every second
}

// The page's own word, whatever died: the dashboard, the network, this machine's sleep.
setInterval(() => {
  const silent = Date.now() - heard, gone = silent > SILENT_MS;
  document.body.classList.toggle("stale", gone);
  if (gone) linked(`no figures for ${duration(1000 * Math.floor(silent / 1000))}`);
  $("stale").hidden = !gone; // its words stay as they are: they are read out once
}, 500);
