// Which cards are drawn together: those of one cluster and query, and those of one post.
import { say } from "./dom.js";
import { number, plural } from "./words.js";

const judged = (made) => made.classList.contains("judged"); // said not to be so, or handled; a word on one post covers no other

// Alerts of one cluster and query read as one: the first of them that nobody judged, "+n more" on it, where the newest stands.
function collect(list, apart) {
  const crowds = new Map();
  for (const made of list.children) {
    made.dataset.place = made.dataset.rank;
    made.classList.remove("crowded");
    made.querySelector(".crowd").hidden = true;
    const key = apart ? "" : made.dataset.crowd;
    if (key) crowds.set(key, [...(crowds.get(key) ?? []), made]);
  }
  for (const all of crowds.values()) {
    const posts = new Set(all.map((made) => made.dataset.post));
    if (posts.size < 2) continue;
    const sorted = all.toSorted((a, b) => judged(a) - judged(b) || a.dataset.rank - b.dataset.rank), [first] = sorted;
    const others = sorted.slice(1).sort((a, b) => judged(a) - judged(b) || b.dataset.rank - a.dataset.rank);
    const open = sorted.some((made) => made.classList.contains("open")), newest = Math.max(...all.map((made) => made.dataset.rank));
    if (all[0] !== first) list.insertBefore(first, all[0]);
    let last = first;
    for (const made of [first, ...others]) {
      if (made !== first) last.after(made);
      last = made;
      made.dataset.place = newest;
      made.classList.toggle("open", open && made === first);
      made.classList.toggle("crowded", !open && made !== first);
    }
    const authors = new Set(all.map((made) => made.dataset.author)), langs = new Set(all.map((made) => made.dataset.lang));
    const button = first.querySelector(".crowd");
    button.hidden = false;
    button.setAttribute("aria-expanded", String(open));
    say(button, open ? "less" : `+${number(posts.size - 1)} more, ${plural(authors.size, "author", "authors")}, ${plural(langs.size, "language", "languages")}`);
  }
}

const SHOWN_OF_POST = 3; // alerts of one post; the others on request

// Cards of one post that follow each other read as one: the surest first, the judged last, and only the first repeats the text. apart:
// clusters are not drawn together, where one of them is all that is looked at.
export function regroup(list, apart = false) {
  collect(list, apart);
  const all = [...list.children];
  for (let start = 0, end; start < all.length; start = end) {
    for (end = start + 1; end < all.length && all[end].dataset.post === all[start].dataset.post;) end++;
    const run = all.slice(start, end), sorted = run.toSorted((a, b) => judged(a) - judged(b) || b.dataset.margin - a.dataset.margin);
    if (sorted.some((made, i) => made !== run[i])) {
      const after = all[end] ?? null;
      for (const made of sorted) list.insertBefore(made, after);
    }
  }
  let head = null, place = 0;
  for (const made of list.children) {
    const same = head !== null && head.dataset.post === made.dataset.post;
    if (same) place++;
    else [head, place] = [made, 0];
    made.classList.toggle("same", same);
    made.classList.toggle("rest", place >= SHOWN_OF_POST && !head.classList.contains("whole"));
    made.querySelector(".weaker").hidden = true;
    if (place >= SHOWN_OF_POST) {
      const button = head.querySelector(".weaker");
      button.hidden = false;
      say(button, head.classList.contains("whole") ? "less" : `+${place + 1 - SHOWN_OF_POST} weaker`);
    }
  }
}
