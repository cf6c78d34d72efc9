// The page begins here: what is wanted is drawn, events are listened to, clicks and keys lead to what they ask for.
import { drawAlerts, group, older, settle, showWaiting } from "./alerts.js";
import { drawBeside, drawChoices } from "./beside.js";
import { $ } from "./dom.js";
import "./draft.js";
import { search } from "./hits.js";
import { given } from "./known.js";
import { lessons, teach } from "./lessons.js";
import { fetchAlerts, listen } from "./live.js";
import { drawMap } from "./map.js";
import { VERDICTS } from "./teach.js";
import { move, unfold } from "./walking.js";
import { clear, onWanted, want, wanted } from "./wanted.js";
import { ago, clock } from "./words.js";

onWanted(async () => {
  drawChoices();
  drawBeside();
  const searched = search();
  await Promise.all([fetchAlerts(), drawMap()]);
  await searched;
});

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

const map = () => want({ map: wanted.map ? "" : "1" });

const KEYS = { // r, h, w, o and n judge the card somebody stands on: teach.js
  j: () => move(1),
  k: () => move(-1),
  p: () => document.activeElement.closest?.(".card")?.querySelector("a[href]")?.click(),
  "/": () => $("search-text").select(),
  f: () => $("q").select(),
  g: showWaiting,
  x: clear,
  m: map,
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
$("map-button").addEventListener("click", () => { tab("alerts"); map(); });
$("help-button").addEventListener("click", () => $("help").showModal());
document.querySelector(".tabs").addEventListener("click", (event) => {
  const button = event.target.closest("[data-show]");
  if (button) { tab(button.dataset.show); scrollTo({ top: 0 }); }
});
setInterval(() => { for (const time of document.querySelectorAll("time[data-ms]")) time.textContent = ago(Number(time.dataset.ms)); }, 5000);

try { document.documentElement.dataset.theme = localStorage.getItem("theme") ?? ""; } catch { /* see theme() */ }
clock(given.state.stats.at);
drawBeside();
drawChoices();
drawAlerts(given.alerts);
if (innerWidth <= 860) document.querySelector(".pipe").open = true; // there it has a tab of its own
search();
drawMap();
listen(given.alerts.event_id);
if (wanted.area && !given.alerts.total) fetchAlerts(); // which says why, where that is no place
lessons();
