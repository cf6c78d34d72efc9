// New alerts for who does not look: read out every few seconds, all that came since, and counted in the tab's title.
import { $ } from "./dom.js";
import { number, plural } from "./words.js";

const TITLE = document.title;
let unseen = 0;
function titled() { document.title = unseen ? `(${number(unseen)}) ${TITLE}` : TITLE; }
document.addEventListener("visibilitychange", () => {
  unseen = 0;
  titled();
});

let unsaid = [], saying = null;
export function announce(fresh) {
  if (document.hidden) unseen += fresh.length;
  titled();
  unsaid.push(...fresh);
  saying ??= setTimeout(() => {
    const of = (kind) => unsaid.filter((one) => one.alert.kind === kind).length, newest = unsaid.at(-1).alert;
    const needs = of("need"), offers = of("offer"), notices = unsaid.length - needs - offers, urgent = unsaid.filter((one) => one.alert.priority === "urgent").length;
    $("say").textContent = `${plural(unsaid.length, "new alert", "new alerts")}: ${plural(needs, "need", "needs")}, ${plural(offers, "offer", "offers")}${notices ? `, ${plural(notices, "warning or report", "warnings and reports")}` : ""}${urgent ? `; ${number(urgent)} urgent` : ""}. Newest: ${newest.kind}, ${newest.label}.`;
    unsaid = [];
    saying = null;
  }, 6000);
}
