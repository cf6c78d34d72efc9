// The table of needs and offers, and that of the notices.
import { $, AID, choice, el, say, styled } from "./dom.js";
import { number, plural, short } from "./words.js";

// The table of categories, and under it that of the notices: made once per set of categories, filled every second.
export function categories(list, open, wanted) {
  const body = $("categories");
  const most = Math.max(1, ...Object.values(open).map((n) => (n.alert ?? 0) + (n.suggestion ?? 0)));
  const totals = { need: 0, offer: 0 };
  const key = list.map((c) => c.category).join(), aid = (c) => !c.kinds || c.kinds.length > 1, notices = $("notices").tBodies[0];
  if (body.dataset.of !== key) {
    body.dataset.of = key;
    body.replaceChildren(...list.filter(aid).map(row));
    notices.replaceChildren(...list.filter((c) => !aid(c)).map(row));
  }
  [...list.filter(aid), ...list.filter((c) => !aid(c))].forEach((c, i) => {
    const line = body.rows[i] ?? notices.rows[i - body.rows.length];
    let any = false;
    for (const kind of c.kinds ?? AID) {
      const { alert = 0, suggestion = 0, also = 0 } = open[`${kind}.${c.category}`] ?? {}, sum = alert + suggestion;
      const cell = line.querySelector(`.cell[data-kind="${kind}"]`);
      totals[kind] += sum;
      any ||= sum + also > 0;
      say(cell.lastElementChild, sum ? short(sum) : also ? `+${short(also)}` : "–");
      cell.classList.toggle("zero", !sum);
      cell.title = also ? `${plural(also, "post says", "posts say")} it beside what they are alerted for` : "";
      cell.querySelector(".pale").style.width = `${(100 * sum) / most}%`;
      cell.querySelector(".solid").style.width = `${(100 * alert) / most}%`;
      cell.setAttribute("aria-label", `${c.label}, ${kind}s: ${plural(alert, "alert", "alerts")}, ${plural(suggestion, "suggestion", "suggestions")}${also ? `, ${number(also)} beside others` : ""}`);
      cell.setAttribute("aria-pressed", String(wanted.category === c.category && wanted.kind === kind));
    }
    line.className = any ? "" : "none";
    line.querySelector("th button").setAttribute("aria-pressed", String(wanted.category === c.category && !wanted.kind));
  });
  say($("needs-total"), short(totals.need));
  say($("offers-total"), short(totals.offer));
}

function row(category) {
  const line = document.createElement("tr"), head = el("th"), name = el("button", "", category.label);
  head.scope = "row";
  name.type = "button";
  name.title = category.iasc ? `${category.label} (IASC: ${category.iasc})` : category.label;
  name.dataset.set = "category";
  choice(name, category.category);
  head.append(name);
  line.append(head);
  for (const kind of category.kinds ?? AID) {
    const data = el("td"), cell = el("button", `cell ${styled(kind)}`);
    cell.type = "button";
    cell.dataset.set = "cell";
    cell.dataset.kind = kind;
    choice(cell, category.category);
    cell.append(el("span", "fill pale"), el("span", "fill solid"), el("span"));
    data.append(cell);
    line.append(data);
  }
  return line;
}
