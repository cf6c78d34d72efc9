// Posts found by meaning, in place of the list of alerts.
import { counted, drawWaiting } from "./alerts.js";
import { get } from "./asking.js";
import { address } from "./card.js";
import { $, choice, clone, el, link } from "./dom.js";
import { FIELDS, wanted } from "./wanted.js";
import { full, language, moment, number, plural } from "./words.js";

export async function search() {
  const text = wanted.search, open = Boolean(text);
  $("hits-panel").hidden = !open;
  $("list").hidden = open;
  drawWaiting();
  counted();
  if (!open) return;
  $("empty").hidden = true;
  const idle = FIELDS.filter((f) => f !== "lang" && wanted[f]).map((f) => (f === "q" ? "text" : f)); // search takes no other
  $("hits-title").textContent = `Posts like “${text}”`;
  $("hits-note").textContent = "Searching …";
  $("hits").replaceChildren();
  try {
    const found = await get(`/api/search?${new URLSearchParams({ text, k: 30, ...(wanted.lang ? { lang: wanted.lang } : {}) })}`);
    if (wanted.search !== text) return;
    const standing = document.activeElement === $("search-text");
    $("hits").replaceChildren(...found.hits.map(hit));
    if (standing && found.hits.length) $("hits").firstElementChild.focus({ preventScroll: true }); // j and k go on from there
    $("hits-note").textContent = `${plural(found.hits.length, "post", "posts")} of ${number(found.searched)}, nearest in meaning first${wanted.lang ? `, in ${language(wanted.lang)} only` : ""}.${found.complete ? "" : " Older posts are still being read in."}${idle.length ? ` Not filtered by ${idle.join(", ")}.` : ""}`;
  } catch (error) { $("hits-note").textContent = `Search failed: ${error.message}`; }
}

// One post found by search.
function hit(found) {
  const made = clone("card-template"), part = (name) => made.querySelector(name), at = Date.parse(found.created_at);
  made.className = "card hit";
  for (const name of [".kind", ".category", ".priority", ".signs", ".level", ".chance", ".repeats", ".marks", ".weaker", ".under", ".near", ".because", ".moved", ".also", ".crowd", ".in-cluster", ".place", ".posted", ".verdicts"]) part(name).remove();
  const text = part(".text");
  text.textContent = found.text;
  text.lang = found.lang;
  part(".age").textContent = moment(at);
  part(".age").dateTime = found.created_at;
  part(".age").title = full(at);
  part(".meter .value").setAttribute("width", (Math.max(0, found.score) * 100).toFixed(1));
  part(".meter .limit").remove();
  part(".score").replaceChildren(el("b", "", found.score.toFixed(2)), " similar");
  part(".card-head").prepend(part(".meter"), part(".score"));
  part(".why").remove();
  part(".lang").textContent = language(found.lang);
  choice(part(".lang"), found.lang);
  part(".source bdi").textContent = found.source;
  choice(part(".source"), found.source);
  const to = address(found.url, found.id);
  if (to) link(part(".open"), to);
  else part(".open").replaceChildren();
  return made;
}
