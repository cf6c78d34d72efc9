// "Other category": which one. A dialog with a list, by keyboard: arrows or letters and Enter, or a digit for the first nine.
import { $, AID, el, words } from "./dom.js";

const labels = new Map(); // category → its words, of the page's list
export function listed(categories) { for (const { category, label } of categories) labels.set(category, label); }
export const called = (query) => { const [kind, category] = query.split("."); return `${words(kind)}: ${labels.get(category) ?? category.replaceAll("_", " ")}`; };

const NONE = "-"; // of another category that is not listed: taught without a name for it

// What may be chosen, in order: what the post was also read as, then every query of the page's list, those of the alert's
// own kind first. own: the alert's query, which it is not. → [[heading, [[query, words]]]]
export function choices(own, also, categories) {
  const taken = new Set([own, ...also.map((reading) => reading.query_id)]), mine = own.split(".")[0], groups = new Map([[mine, []]]);
  for (const { category, label, kinds } of categories) {
    for (const kind of kinds ?? AID) {
      const query = `${kind}.${category}`;
      if (!taken.has(query)) groups.set(kind, [...(groups.get(kind) ?? []), [query, label]]);
    }
  }
  const read = also.filter(({ query_id: query }) => query !== own)
    .map(({ query_id: query, probability: p }) => [query, `${called(query)}${p == null ? "" : `, ${Math.round(100 * p)} %`}`]);
  return [["Also read as", read], ...[...groups].map(([kind, all]) => [`${words(kind)}s`, all])].filter(([, all]) => all.length);
}

// Ask which category a post is of instead. → its query, "" for one that is not listed, null where nobody said: Escape.
export async function instead(own, also, categories) {
  const dialog = $("which"), list = $("which-list");
  let number = 0;
  listed(categories);
  const option = (value, text) => {
    number++;
    const made = el("option", "", number < 10 ? `${number} ${text}` : text);
    made.value = value;
    return made;
  };
  list.replaceChildren(...choices(own, also, categories).map(([heading, all]) => {
    const group = el("optgroup");
    group.label = heading;
    group.append(...all.map(([query, text]) => option(query, text)));
    return group;
  }), option(NONE, "Another, not in this list"));
  list.selectedIndex = -1; // an Enter too many chooses nothing
  list.scrollTop = 0;
  dialog.returnValue = ""; // what an earlier choice left there; Escape leaves it as it is
  dialog.showModal();
  await new Promise((done) => dialog.addEventListener("close", done, { once: true }));
  if (dialog.returnValue !== "ok" || !list.value) return null;
  return list.value === NONE ? "" : list.value;
}

const teach = () => $("which").querySelector("form").requestSubmit($("which").querySelector("button"));

$("which-list").addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const chosen = /^[1-9]$/.test(event.key) ? event.target.options[event.key - 1] : null;
  if (chosen) chosen.selected = true;
  else if (event.key !== "Enter") return;
  event.preventDefault();
  teach();
});
$("which-list").addEventListener("dblclick", (event) => event.target.closest("option") && teach());
