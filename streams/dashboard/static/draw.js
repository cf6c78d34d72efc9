// Builds what is seen. Text written by strangers only ever goes through textContent; links were checked by the server
// and are checked again here.
import { ago, duration, full, language, moment, number, plural, rate, short, span, sureness } from "./words.js";

export const $ = (id) => document.getElementById(id);

function clone(id) { return $(id).content.firstElementChild.cloneNode(true); }

function say(element, text) { if (element.textContent !== text) element.textContent = text; }

export function el(tag, className = "", text = "") {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text) made.textContent = text;
  return made;
}

function choice(button, value) { button.dataset.value = value ?? ""; }

function link(anchor, url) {
  if (/^(https?:\/\/|\/open\?)/i.test(url ?? "")) {
    anchor.href = url;
    anchor.title = url.startsWith("/") ? "" : anchor.host; // where it leads, before anybody goes; nothing where the address has none
  } else anchor.textContent = "";
}

const LATE_MS = 600_000; // seen so long after it was posted: then both times are told

const KINDS = { need: "Need", offer: "Offer", warning: "Warning", order: "Order", report: "Report" };
export const words = (kind) => KINDS[kind] ?? kind;
export const styled = (kind) => (kind === "need" || kind === "offer" ? kind : "notice");

const PLACE = ["whole", "open", "same", "rest", "crowded", "asked"]; // how a card stands in the list: a newer revision leaves it so

// One alert. Called again with a newer revision it changes the same card.
export function card(shown, clusters, old = null, labels = new Map()) {
  const { alert, repeats = 0 } = shown, made = old ?? clone("card-template"), part = (name) => made.querySelector(name);
  const gone = alert.status === "withdrawn", place = PLACE.filter((name) => made.classList.contains(name));
  made.className = ["card", styled(alert.kind), alert.level, alert.priority, gone && "withdrawn", ...place].filter(Boolean).join(" ");
  made.dataset.id = alert.alert_id;
  made.dataset.rank = shown.rank;
  made.dataset.revision = alert.revision;
  made.dataset.post = alert.post.id;
  made.dataset.author = shown.author ?? "";
  made.dataset.margin = alert.score - alert.threshold;
  made.dataset.lang = alert.post.lang;
  made.dataset.crowd = alert.cluster_id && !gone ? `${alert.cluster_id} ${alert.query_id}` : "";
  part(".kind").replaceChildren(el("span", "mark"), words(alert.kind));
  choice(part(".kind"), alert.kind);
  say(part(".category"), alert.label);
  choice(part(".category"), alert.category);
  say(part(".level"), gone ? "withdrawn" : alert.level === "suggestion" ? "suggestion" : "");
  const told = gone ? "" : alert.priority ?? "";
  part(".priority").hidden = !told;
  say(part(".priority"), told);
  choice(part(".priority"), told);
  part(".priority").title = told && `Priority: ${told}, ${Math.round((alert.priority_probability ?? 0) * 100)} % likely`;
  say(part(".signs"), gone ? "" : (alert.evidence.signs ?? []).join(", "));
  const sure = sureness(alert);
  say(part(".chance"), sure.lead);
  part(".chance").classList.toggle("good", sure.good);
  for (const name of [".chance", ".score", ".under"]) part(name).title = sure.title;
  repeated(made, repeats);
  marked(part(".marks"), shown);
  const seen = Date.parse(alert.seen_at), created = Date.parse(alert.post.created_at), age = part(".age");
  age.dateTime = alert.seen_at;
  age.dataset.ms = gone ? created : seen;
  age.title = `seen ${full(seen)}, posted ${full(created)}`;
  say(age, ago(Number(age.dataset.ms)));
  made.classList.toggle("late", !gone && seen - created > LATE_MS);
  const text = part(".text");
  say(text, gone ? (alert.withdrawn_because === "deleted" ? "The post was deleted." : "The post was edited and no longer matches.") : alert.post.text);
  text.lang = gone ? "en" : alert.post.lang;
  const value = Math.max(0, Math.min(1, alert.score)) * 100, limit = Math.max(0, Math.min(1, alert.threshold)) * 100;
  part(".meter .value").setAttribute("width", value.toFixed(1));
  part(".meter .limit").setAttribute("x", limit.toFixed(1));
  part(".score").replaceChildren(el("b", "", sure.value), sure.held);
  say(part(".under"), sure.under);
  const near = alert.evidence;
  part(".near").hidden = !near.nearest;
  say(part(".sentence"), near.nearest);
  part(".sentence").lang = near.nearest_lang;
  say(part(".near-lang"), language(near.nearest_lang));
  part(".near").title = `nearest sentence of the query (${language(near.nearest_lang)}, cosine ${near.nearest_cosine.toFixed(2)}): ${near.nearest}`;
  also(part(".also"), gone ? [] : alert.also ?? [], labels);
  explained(part(".because"), near);
  say(part(".lang"), language(alert.post.lang));
  choice(part(".lang"), alert.post.lang);
  say(part(".source bdi"), alert.post.source);
  choice(part(".source"), alert.post.source);
  placed(made, alert.cluster_id, clusters);
  located(part(".place"), alert.post.geo, gone ? [] : alert.post.places ?? []);
  say(part(".posted"), Math.abs(seen - created) > LATE_MS ? `posted ${moment(created)}` : "");
  const to = address(alert.post.url, alert.post.id);
  if (to && !gone) link(part(".open"), to);
  else part(".open")?.replaceChildren();
  return made;
}

// What the post also says, beside the reading it is alerted for.
function also(line, readings, labels) {
  const told = readings.map((reading) => {
    const [kind, category] = reading.query_id.split(".");
    return `${words(kind)}: ${labels.get(category) ?? category.replaceAll("_", " ")}${reading.probability == null ? "" : ` ${Math.round(reading.probability * 100)} %`}`;
  });
  say(line, told.length ? `also ${told.join(", ")}` : "");
}

// Why it is so likely: numbers that add up to the log-odds, and the nearest sentence in the readers' language.
function explained(because, near) {
  const terms = Object.entries(near.terms ?? {}), signed = (n) => `${n < 0 ? "−" : "+"}${Math.abs(n).toFixed(2)}`;
  because.replaceChildren();
  if (near.told) {
    const told = el("q"), sentence = el("bdi", "", near.told);
    sentence.lang = near.told_lang;
    told.title = "The query's example sentence that is nearest to the post, in this language. It is no translation of the post.";
    told.append(sentence);
    because.append("like the query’s ", told, ` ${language(near.told_lang)}`, terms.length ? " · " : "");
  }
  if (terms.length) because.append(`${signed(terms.reduce((sum, [, n]) => sum + n, 0))} = ${terms.map(([name, n]) => `${name} ${signed(n)}`).join(" + ")}`);
}

// The words that move a reading, marked in the post's text: more likely with them, or less. Offsets count code points.
export function moved(made, found) {
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

// Where the post says it is; else the place it names, with how sure that is: a name is no position.
function located(place, geo, named) {
  place.replaceChildren();
  place.title = "";
  if (!geo && named.length) {
    const [first, ...others] = named, told = (one) => `${one.name} (${Math.round(one.confidence * 100)} %)`;
    place.title = `It names ${[first, ...others].map((one) => `“${one.said}”: ${one.name}, ${Math.round(one.confidence * 100)} % likely meant, ${one.radius_km.toFixed(0)} km around`).join("; ")}`;
    place.append("names ", el("bdi", "", told(first)), others.length ? ` +${others.length}` : "");
  }
  if (!geo) return;
  const where = `${geo.lat.toFixed(4)}, ${geo.lon.toFixed(4)}`;
  place.title = `The post says it is at ${where}`;
  place.append("⌖", el("span", "", ` ${where}`));
}

const judged = (made) => made.classList.contains("judged"); // said not to be so; a word on one post covers no other

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

// What a flood took from itself, and the sign of a campaign: told, so that a responder can judge.
function marked(place, { like = 0, copies = 0 }) {
  place.hidden = !like && !copies;
  say(place, [like ? `+${number(like)} like this` : "", copies ? `${number(copies)} accounts, same words` : ""].filter(Boolean).join(", "));
  place.title = [
    like ? `${number(like)} more alerts of the same cluster or account gave way to others` : "",
    copies ? `${number(copies)} accounts, most of them new here, said this within a minute: perhaps arranged` : "",
  ].filter(Boolean).join("; ");
}

export function repeated(made, repeats) {
  const badge = made.querySelector(".repeats");
  badge.hidden = !repeats;
  say(badge, repeats ? `×${number(repeats + 1)}` : "");
  badge.title = repeats ? `said ${number(repeats + 1)} times: this post and ${plural(repeats, "repeat", "repeats")}` : "";
}

export function placed(made, id, clusters) {
  const button = made.querySelector(".in-cluster"), cluster = clusters.get(id);
  button.hidden = !id;
  choice(button, id);
  say(button.querySelector("bdi"), id ? (cluster ? `${cluster.label || id} (${short(cluster.posts)})` : `cluster ${id}`) : "");
  button.title = "Only this cluster";
}

// One post found by search.
export function hit(found) {
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

// Where a post can be read: at its platform, or by way of the vault, for who may open it (access.py).
const address = (url, id) => url ?? ("opens" in document.body.dataset ? `/open?post=${encodeURIComponent(id)}` : null);

const AID = ["need", "offer"]; // the kinds of a category that is no notice

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
  say($("workers-on"), troubled.length ? `${plural(troubled.length, "worker cannot", "workers cannot")} load an encoder version` : versions && `encoder ${versions}`);
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

export function bars(id, all, field, name, wanted) {
  const shown = all.filter(([key]) => key).slice(0, 6), rest = all.reduce((sum, [, n]) => sum + n, 0) - shown.reduce((sum, [, n]) => sum + n, 0);
  const counts = rest ? [...shown, ["", rest]] : shown;
  const most = Math.max(1, ...shown.map(([, n]) => n)), held = document.activeElement?.closest?.(`#${id} button`)?.dataset.value;
  $(id).replaceChildren(...counts.map(([key, n]) => {
    const item = el("li"), line = el(key ? "button" : "span", key ? "" : "rest"), track = el("span", "track"), fill = el("span", "fill");
    if (key) {
      line.type = "button";
      line.dataset.set = field;
      line.dataset.value = key;
      line.setAttribute("aria-pressed", String(wanted[field] === key));
    }
    fill.style.width = key ? `${(100 * n) / most}%` : "0";
    track.append(fill);
    line.append(el("bdi", "", key ? name(key) : "others"), track, el("span", "", short(n)));
    item.append(line);
    return item;
  }));
  if (held) [...$(id).querySelectorAll("button")].find((b) => b.dataset.value === held)?.focus();
}

export function cluster(event, wanted, labels, wasOpen) {
  const made = clone("cluster-template"), part = (name) => made.querySelector(name);
  const langs = Object.keys(event.languages ?? {}), label = part(".cluster-label");
  made.dataset.id = event.cluster_id;
  choice(label, event.cluster_id);
  label.firstElementChild.textContent = event.label || event.cluster_id;
  label.setAttribute("aria-pressed", String(wanted.cluster === event.cluster_id));
  part(".burst").textContent = event.burst >= 0.5 ? `▲ ${event.burst.toFixed(1)}` : "";
  part(".size").textContent = plural(event.posts, "post", "posts");
  part(".span").textContent = `${span(Date.parse(event.first_at), Date.parse(event.last_at))}${langs.length ? ` · ${langs.length > 3 ? plural(langs.length, "language", "languages") : langs.map(language).join(", ")}` : ""}`;
  const queries = Object.entries(event.categories ?? {}).sort((a, b) => b[1] - a[1]);
  for (const [query, n] of queries.slice(0, 3)) {
    const [kind, category] = query.split("."), mark = el("span", `kind ${styled(kind)}`);
    mark.append(el("span", "mark"), `${words(kind)}: ${labels.get(category) ?? category} ${short(n)}`);
    part(".cluster-mix").append(mark);
  }
  if (queries.length > 3) part(".cluster-mix").append(el("span", "more", `+${queries.length - 3}`));
  const medoid = part(".medoid"), examples = event.examples ?? [];
  medoid.textContent = event.medoid?.text ?? "";
  medoid.lang = event.medoid?.lang ?? "";
  const details = part("details");
  details.hidden = !examples.length;
  details.open = wasOpen;
  part("summary").textContent = plural(examples.length, "more example", "more examples");
  part(".examples").append(...examples.map((x) => {
    const item = el("li", "", x.text);
    item.dir = "auto";
    item.lang = x.lang;
    return item;
  }));
  return made;
}

// Clusters that an audit takes for one.
export function proposals(list) {
  $("proposals-panel").hidden = !list.length;
  if ($("proposals").dataset.of === JSON.stringify(list)) return;
  $("proposals").dataset.of = JSON.stringify(list);
  $("proposals").replaceChildren(...list.map((proposal) => {
    const item = el("li");
    proposal.cluster_ids.slice(0, 4).forEach((id, i) => {
      const button = el("button");
      button.type = "button";
      button.dataset.set = "cluster";
      choice(button, id);
      button.append(el("bdi", "", proposal.labels[i] || id));
      item.append(i ? " + " : "", button);
    });
    if (proposal.cluster_ids.length > 4) item.append(` + ${proposal.cluster_ids.length - 4} more`);
    item.append(el("span", "count", ` ${plural(proposal.posts, "post", "posts")}, ${proposal.similarity.toFixed(2)} similar`));
    return item;
  }));
}
