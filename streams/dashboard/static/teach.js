// Teaching: verdicts on cards by key and button, what was taught, how often alerts were right. Text only by textContent.
import { get, post } from "./asking.js";
import { $, el } from "./dom.js";
import { called, instead as which, listed } from "./instead.js";
import { moment, number, plural } from "./words.js";

export const VERDICTS = { r: ["right", "right", "✓"], h: ["handled", "handled", "☑"], w: ["wrong", "wrong", "✗"], o: ["other", "other category", "⇄"], n: ["none", "not a need", "∅"] };
const SAID = Object.fromEntries(Object.values(VERDICTS).map(([verdict, words]) => [verdict, words]));
let known = new Map(); // post and query → [verdict, who, which category instead], of what is on the page
const also = new WeakMap(); // card → the further readings of its post
let who = document.body.dataset.person ?? ""; // of a token that names somebody
try { who ||= localStorage.getItem("who") ?? ""; } catch { /* private window: asked once a page */ }

const key = (post, query) => `${post} ${query}`;

// Who labels, asked once; empty if nobody wants to say.
async function name() {
  if (who) return who;
  const dialog = $("who");
  dialog.showModal();
  await new Promise((done) => dialog.addEventListener("close", done, { once: true }));
  who = dialog.returnValue === "ok" ? $("who-name").value.trim() : "";
  try { localStorage.setItem("who", who); } catch { /* see above */ }
  return who;
}

// The buttons of a card; made once for each.
export function teachable(made, alert) {
  const box = made.querySelector(".verdicts");
  made.dataset.query = alert.query_id;
  also.set(made, alert.also ?? []);
  if (!box.children.length) {
    box.replaceChildren(...Object.entries(VERDICTS).map(([letter, [verdict, words, sign]]) => {
      const button = el("button", `v-${verdict}`);
      button.append(el("span", "sign", sign), el("span", "word", words));
      button.setAttribute("aria-label", words);
      button.type = "button";
      button.dataset.verdict = verdict;
      button.title = `${verdict === "handled" ? "Somebody takes care of it: right, and open no longer" : `Teach: ${words}`} (key ${letter})`;
      return button;
    }), el("span", "said"));
  }
  box.hidden = alert.status === "withdrawn";
  marked(made);
}

function marked(made) {
  const [verdict, by, instead] = known.get(key(made.dataset.post, made.dataset.query)) ?? [];
  made.classList.toggle("judged", Boolean(verdict) && verdict !== "right");
  for (const button of made.querySelectorAll("[data-verdict]")) button.setAttribute("aria-pressed", String(button.dataset.verdict === verdict));
  const said = made.querySelector(".said");
  if (said) said.textContent = by ? `says ${by}${instead ? `: ${called(instead)}` : ""}` : "";
}

// Say what a card is, of another category also which; one's own word once more takes it back, somebody else's stays theirs.
// Returns whether something was said. categories: the page's list.
export async function judge(made, verdict, categories) {
  const { id, post: of, query } = made.dataset, before = known.get(key(of, query)) ?? null;
  const by = await name();
  if (!by) return false;
  if (before?.[0] === verdict && before[1] === by) {
    heard(made, await sent(made, "/api/labels/undo", { post_id: of, query_id: query, seen: before }));
    return true;
  }
  if (before?.[0] === "handled" && verdict !== "handled" && before[1] !== by && !await over(before[1], verdict)) return false;
  const instead = verdict === "other" ? await which(query, also.get(made) ?? [], categories) : "";
  if (instead === null) return false;
  const stands = await sent(made, "/api/labels", { alert_id: id, verdict, by, query_id: query, instead, seen: before });
  heard(made, stands);
  if (stands.by === by) return true;
  made.querySelector(".said").textContent = $("say").textContent = `${stands.by} says so already`;
  return false;
}

// What stands now of a card: a label, null where nobody says anything.
function heard(made, label) {
  const of = key(made.dataset.post, made.dataset.query);
  if (label) known.set(of, [label.verdict, label.by, label.instead ?? ""]);
  else known.delete(of);
  marked(made);
}

// What was seen may be no longer so: then the card shows what is.
async function sent(made, path, body) {
  try { return await post(path, body); } catch (error) {
    known = new Map(Object.entries((await get("/api/taught")).said));
    marked(made);
    throw error;
  }
}

// Over what somebody takes care of one is asked first. → whether to say it all the same
async function over(by, verdict) {
  const dialog = el("dialog"), form = el("form"), title = el("h2", "", `${by} takes care of this`);
  const no = el("button", "", "No, leave it"), yes = el("button", "", `Yes, ${SAID[verdict]}`);
  dialog.id = "over"; // alerts.js: the list does not move meanwhile
  form.method = "dialog";
  yes.value = "ok";
  title.id = "over-title";
  dialog.setAttribute("aria-labelledby", title.id);
  form.append(no, " ", yes); // the first has the focus: an Enter too many changes nothing
  dialog.append(title, el("p", "", `Say “${SAID[verdict]}” instead? Then it is ${by}'s no longer.`), form);
  document.body.append(dialog);
  dialog.showModal();
  await new Promise((done) => dialog.addEventListener("close", done, { once: true }));
  dialog.remove();
  return dialog.returnValue === "ok";
}

export async function undo({ post: of, query, seen }) {
  await post("/api/labels/undo", { post_id: of, query_id: query, seen: JSON.parse(seen) });
}

// What was taught, beside the list. categories: the page's list.
export function taught(all, cards, categories) {
  known = new Map(Object.entries(all.said));
  listed(categories);
  for (const made of cards) if (made.dataset.query) marked(made);
  $("taught-count").textContent = all.total ? number(all.total) : "";
  $("taught-problem").textContent = all.problem;
  $("taught-problem").hidden = !all.problem;
  $("shift").textContent = `Alerts that were right, of those judged in the last ${number(all.shift_h)} h (95 % interval)`;
  $("shift").hidden = !all.precision.length;
  const percent = (share) => Math.round(100 * share);
  $("precision").replaceChildren(...all.precision.map((p) => {
    const line = el("li");
    line.append(el("span", "", called(p.query_id)), el("b", "", `${percent(p.right / p.judged)} %`), el("small", "", `${p.right} of ${p.judged}, ${percent(p.low)}–${percent(p.high)} %`));
    return line;
  }));
  $("lessons").replaceChildren(...all.labels.map((label) => {
    const line = el("li"), text = el("bdi", "", label.text), button = el("button", "", "undo");
    text.dir = "auto";
    text.lang = label.lang ?? "";
    button.type = "button";
    button.setAttribute("aria-label", `Take back: ${SAID[label.verdict]}, ${label.text.slice(0, 60)}`);
    Object.assign(button.dataset, { post: label.post_id, query: label.query_id, seen: JSON.stringify([label.verdict, label.by, label.instead ?? ""]) });
    line.append(el("b", `v-${label.verdict}`, SAID[label.verdict]), text, el("small", "", `${called(label.query_id)}${label.instead ? ` → ${called(label.instead)}` : ""} · ${label.by} · ${moment(label.at * 1000)}`), button);
    return line;
  }));
  $("no-lessons").hidden = all.labels.length > 0;
}

// Cards that are worth a word: shown by their edge, and counted; the page shows the line of it when nobody reads.
export function asked(ids, cards) {
  const wanted = new Set(ids);
  let shown = 0;
  for (const made of cards) {
    made.classList.toggle("asked", wanted.has(made.dataset.id));
    shown += wanted.has(made.dataset.id);
  }
  $("ask").textContent = shown ? `Judge ${plural(shown, "post", "posts")} that would teach most` : "Nothing more to judge now";
}
