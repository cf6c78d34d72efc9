// Going from card to card by keys, and looking closer at one.
import { group } from "./alerts.js";
import { get } from "./asking.js";
import { $, el, say } from "./dom.js";
import { wanted } from "./wanted.js";

export function cards() { return [...$(wanted.search ? "hits" : "list").children].filter((made) => made.checkVisibility()); }

export function move(step) {
  const all = cards(), at = all.indexOf(document.activeElement?.closest?.(".card"));
  stand(all[at < 0 ? 0 : Math.max(0, Math.min(all.length - 1, at + step))]);
}

export function stand(made) {
  made?.focus({ preventScroll: true });
  made?.scrollIntoView({ block: "center" });
}

export function unfold(made) {
  if (made.classList.toggle("whole") && made.parentElement === $("list")) asksWhy(made);
  if (made.parentElement === $("list")) group();
}

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

// The words that move a reading, marked in the post's text: more likely with them, or less. Offsets count code points.
function moved(made, found) {
  const text = made.querySelector(".text"), letters = [...text.textContent], parts = [];
  const most = Math.max(0.2, ...found.words.map((word) => Math.abs(word.by))), signed = (n) => `${n < 0 ? "−" : "+"}${Math.abs(n).toFixed(2)}`;
  let at = 0;
  for (const { start, end, by } of found.words) {
    const strength = Math.round((3 * Math.abs(by)) / most), word = letters.slice(start, end).join("");
    parts.push(letters.slice(at, start).join(""));
    if (strength) {
      const marked = el("mark", `${by < 0 ? "against" : "toward"} by-${strength}`, word);
      marked.title = `${signed(by)} log-odds`;
      parts.push(marked);
    } else parts.push(word);
    at = end;
  }
  text.replaceChildren(...parts, letters.slice(at).join(""));
  const sum = found.words.reduce((all, word) => all + word.by, 0);
  say(made.querySelector(".moved"), found.words.length ? `${signed(found.log_odds)} = words ${signed(sum)} + what no single word moves ${signed(found.rest)}` : "");
}
