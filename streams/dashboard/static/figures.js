// What the pipeline does: figures, workers, languages and sources.
import { $, el, say } from "./dom.js";
import { duration, number, plural, rate, short } from "./words.js";

const OUTCOMES = [["alert", "alerts"], ["suggestion", "suggestions"], ["no_match", "no match"], ["folded", "folded repeats"], ["rejected", "rejected"], ["deleted", "deleted"], ["waiting", "under way"]];

export function figures(stats, history) {
  const { totals, lag } = stats;
  say($("rate"), rate(stats.posts_per_s));
  const most = Math.max(1, ...history), points = history.map((n, i) => `${((120 * i) / (history.length - 1)).toFixed(1)},${(27 - (25 * n) / most).toFixed(1)}`).join(" ");
  $("spark").querySelector("polyline").setAttribute("points", points);
  $("spark").querySelector("polygon").setAttribute("points", `0,28 ${points} 120,28`);
  say($("p50"), duration(stats.latency_p50_ms));
  say($("p95"), duration(stats.latency_p95_ms));
  say($("read"), number(totals.read ?? 0));
  const known = OUTCOMES.slice(0, -1).reduce((sum, [name]) => sum + (totals[name] ?? 0), 0);
  const all = { ...totals, waiting: Math.max(0, (totals.read ?? 0) - known) };
  const bar = $("outcome-bar"), list = $("outcomes");
  if (!bar.children.length) {
    for (const [name, label] of OUTCOMES) {
      bar.append(el("span", `o-${name}`));
      const item = el("li");
      item.append(el("i", `o-${name}`), el("b"), label);
      list.append(item);
    }
  }
  OUTCOMES.forEach(([name], i) => {
    const n = all[name] ?? 0;
    bar.children[i].style.flexGrow = n;
    bar.children[i].hidden = !n;
    say(list.children[i].querySelector("b"), short(n));
    list.children[i].hidden = !n && (name === "deleted" || name === "waiting");
  });
  const waiting = lag ? Object.values(lag).reduce((a, b) => a + b, 0) : null;
  say($("lag"), waiting == null ? "–" : short(waiting));
  say($("lag-where"), waiting == null ? "the broker does not answer" : waiting ? `most in ${Object.entries(lag).sort((a, b) => b[1] - a[1])[0][0]}` : "all caught up");
  const up = stats.workers.filter((w) => w.state === "ready").length;
  say($("workers-up"), `${up}`);
  const versions = [...new Set(stats.workers.filter((w) => w.state === "ready").map((w) => w.encoder_version))].join(", ");
  $("workers-say").title = versions && `encoder ${versions}`;
  const troubled = stats.workers.filter((w) => w.state === "ready" && w.message);
  $("workers-on").classList.toggle("trouble", troubled.length > 0);
  $("workers-on").title = troubled.map((w) => `${w.name} ${w.message}`).join("\n");
  say($("workers-on"), troubled.length ? plural(troubled.length, "worker has trouble", "workers have trouble") : versions && `encoder ${versions}`);
  say($("workers-say"), up === stats.workers.length ? (up ? "ready" : "none has reported") : `of ${stats.workers.length} ready`);
}

export function pipeline(stats) {
  $("lags").replaceChildren(...Object.entries(stats.lag ?? {}).flatMap(([topic, n]) => [el("dt", "", `${topic} waiting`), el("dd", "", plural(n, "frame", "frames"))]));
  $("workers").replaceChildren(...stats.workers.map((w) => {
    const item = el("li");
    item.dataset.state = w.state;
    const what = [w.agents.join(", "), w.encoder_version && `encoder ${w.encoder_version}`, w.message].filter(Boolean).join(" · ");
    item.append(el("span", "dot"), el("span", "", `${w.name}: ${w.state}${w.state === "gone" ? `, silent for ${duration(w.silent_s * 1000)}` : ""}`), el("small", "", what));
    return item;
  }));
  const search = stats.search, skipped = Object.values(search?.skipped ?? {}).reduce((a, b) => a + b, 0);
  say($("search-status"), !search ? "Search is off." : search.message || `Search ${search.state}: ${plural(search.posts, "post", "posts")}${skipped ? `, ${plural(skipped, "frame", "frames")} skipped` : ""}.`);
}

export function bars(id, all, field, name, wanted, most = 6) {
  if ($(id).matches(":active")) return; // what goes under a press takes its click along
  const shown = all.filter(([key]) => key).slice(0, most), rest = all.reduce((sum, [, n]) => sum + n, 0) - shown.reduce((sum, [, n]) => sum + n, 0);
  const counts = rest ? [...shown, ["", rest]] : shown;
  const biggest = Math.max(1, ...shown.map(([, n]) => n)), held = document.activeElement?.closest?.(`#${id} button`)?.dataset.value;
  $(id).replaceChildren(...counts.map(([key, n]) => {
    const item = el("li"), line = el(key ? "button" : "span", key ? "" : "rest"), track = el("span", "track"), fill = el("span", "fill");
    if (key) {
      line.type = "button";
      line.dataset.set = field;
      line.dataset.value = key;
      line.setAttribute("aria-pressed", String(wanted[field] === key));
    }
    fill.style.width = key ? `${(100 * n) / biggest}%` : "0";
    track.append(fill);
    line.append(el("bdi", "", key ? name(key) : "others"), track, el("span", "", short(n)));
    item.append(line);
    return item;
  }));
  if (held) [...$(id).querySelectorAll("button")].find((b) => b.dataset.value === held)?.focus();
}
