// One alert as a card.
import { choice, clone, el, link, say, styled, words } from "./dom.js";
import { ago, areaAround, full, language, moment, number, plural, short, sureness } from "./words.js";

const NEAR_KM = 5; // of a post that says where it is: what else happens there
const LATE_MS = 600_000; // seen so long after it was posted: then both times are told

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

// Where the post says it is; else the place it names, with how sure that is: a name is no position. It leads to the posts
// that are there.
function located(place, geo, named) {
  place.replaceChildren();
  place.title = "";
  choice(place, "");
  if (!geo && named.length) {
    const [first, ...others] = named, told = (one) => `${one.name} (${Math.round(one.confidence * 100)} %)`;
    choice(place, areaAround(first.lat, first.lon, first.radius_km, first.name));
    place.title = `Only posts there. It names ${[first, ...others].map((one) => `“${one.said}”: ${one.name}, ${Math.round(one.confidence * 100)} % likely meant, ${one.radius_km.toFixed(0)} km around`).join("; ")}`;
    place.append("names ", el("bdi", "", told(first)), others.length ? ` +${others.length}` : "");
  }
  if (!geo) return;
  const where = `${geo.lat.toFixed(4)}, ${geo.lon.toFixed(4)}`;
  choice(place, areaAround(geo.lat, geo.lon, NEAR_KM));
  place.title = `The post says it is at ${where}. Only posts within ${NEAR_KM} km of it`;
  place.append("⌖", el("span", "", ` ${where}`));
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

// Where a post can be read: at its platform, or by way of the vault, for who may open it (access.py).
export const address = (url, id) => url ?? ("opens" in document.body.dataset ? `/open?post=${encodeURIComponent(id)}` : null);
