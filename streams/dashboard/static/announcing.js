// New alerts read out, for who does not see the page: every few seconds, all that came since.
import { $ } from "./dom.js";
import { number, plural } from "./words.js";

let unsaid = [], saying = null;
export function announce(fresh) {
  unsaid.push(...fresh);
  saying ??= setTimeout(() => {
    const of = (kind) => unsaid.filter((one) => one.alert.kind === kind).length, newest = unsaid.at(-1).alert;
    const needs = of("need"), offers = of("offer"), notices = unsaid.length - needs - offers, urgent = unsaid.filter((one) => one.alert.priority === "urgent").length;
    $("say").textContent = `${plural(unsaid.length, "new alert", "new alerts")}: ${plural(needs, "need", "needs")}, ${plural(offers, "offer", "offers")}${notices ? `, ${plural(notices, "warning or report", "warnings and reports")}` : ""}${urgent ? `; ${number(urgent)} urgent` : ""}. Newest: ${newest.kind}, ${newest.label}.`;
    unsaid = [];
    saying = null;
  }, 6000);
}
