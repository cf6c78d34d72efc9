// The map: where the posts are that fit what is wanted. A mark, or a place beside it, leads to its posts.
import { get, problem } from "./asking.js";
import { chart, kmBetween } from "./chart.js";
import { $, el, say } from "./dom.js";
import { bars } from "./figures.js";
import { FIELDS, query, want, wanted } from "./wanted.js";
import { around, number, plural } from "./words.js";

const AGAIN_MS = 3000; // new alerts are looked for so often
const REACH_KM = 500; // around a place: what the first look holds
const TRIED = 100; // places, those with most posts
const CLOSE_DEGREES = 0.02; // no map parts what is nearer: a click leads to all of it
const LEAST_DEGREES = 0.15; // it holds at the least
let sheet = null, drawn = null; // once it was opened; once its outlines came
let found = { spots: [], standing: 0 };
let fitted = null; // the area that was looked at last; null: nothing was yet
let failed = false; // it was told that it could not be fetched
let asked = 0, again = null, lookedUp = 0; // requests are counted: a late answer to an old question is dropped
const WORLD = [-55, -170, 70, 170];

// "Les Cayes, Sud, HT" in a narrow column: without its province.
const brief = (spot) => (spot.name ? spot.name.split(", ").filter((_, i, all) => !i || i === all.length - 1).join(", ") : `${spot.lat.toFixed(2)}, ${spot.lon.toFixed(2)}`);
const told4 = ([south, west, north, east]) => [south, turned(west), north, turned(east)].map((n) => n.toFixed(4)).join(); // to ten metres
const turned = (lon) => (Math.abs(lon) <= 180 ? lon : ((lon + 540) % 360) - 180);
const posts = (spot) => Object.values(spot.kinds).reduce((a, b) => a + b, 0);

// As it is wanted now: shown or not, and of what.
export async function drawMap() {
  $("map").hidden = !wanted.map;
  $("map-button").setAttribute("aria-pressed", String(Boolean(wanted.map)));
  if (!wanted.map) return;
  if (!sheet) {
    sheet = chart($("chart"), marks, async (area) => get(`/api/towns?${new URLSearchParams({ area: told4(area) })}`).catch(() => []));
    sheet.fit(WORLD);
  }
  drawn ??= get("/static/outlines.json").then(sheet.outlines, (error) => {
    drawn = null; // asked for again with the next look
    problem(`The outlines could not be fetched: ${error.message}`);
  });
  const question = ++asked;
  try {
    const answer = await get(`/api/spots?${query()}`);
    if (question !== asked || !wanted.map) return;
    found = answer;
    if (failed) problem("");
    failed = false;
    if (wanted.area) say($("place-problem"), answer.problem ?? "");
  } catch (error) {
    if (question !== asked) return;
    if (!failed) problem(`What the map shows could not be fetched: ${error.message}`);
    failed = true;
    return mapNews(); // asks again
  }
  sheet.frame(found.box);
  const look = found.box && fitted !== wanted.area ? found.box : fitted === null && found.spots.length ? middle(found.spots) : null;
  if (look ? sheet.fit(look) : fitted !== null) fitted = wanted.area;
  marks(true);
  beside();
}

// Alerts came: they are looked for, but not with each.
export function mapNews() {
  if (!wanted.map || document.hidden) return; // looked for once somebody sees it again
  again ??= setTimeout(() => { again = null; drawMap(); }, AGAIN_MS);
}

document.addEventListener("visibilitychange", mapNews);

function beside() {
  const names = new Map(found.spots.map((spot) => [spot.area, brief(spot)])), shown = found.spots.reduce((sum, spot) => sum + posts(spot), 0);
  bars("places", found.spots.map((spot) => [spot.area, posts(spot)]), "area", (area) => names.get(area), wanted, 8);
  say($("map-note"), `${number(found.placed)} of ${plural(found.standing, "post that stands says", "posts that stand say")} where they are, or name a place${shown < found.placed ? `; the ${number(shown)} in the places with most of them are shown` : ""}. A name is no position: a place stands at its middle, a country or province in a broken ring. Outlines: Natural Earth; places: GeoNames.`);
  if (document.activeElement !== $("place-name") && !$("place-problem").textContent) $("place-name").value = wanted.area && !/^[\d.,\s-]+$/.test(wanted.area) ? wanted.area : "";
}

// What the first look holds: the surroundings of some hundred kilometres with most posts, not a word of somewhere else that
// was taken for a place; of places with a middle, if there are any.
function middle(spots) {
  const near = spots.some((spot) => !spot.wide) ? spots.filter((spot) => !spot.wide) : spots;
  const of = (spot) => near.filter((other) => kmBetween(spot, other) < REACH_KM), count = (all) => all.reduce((sum, spot) => sum + posts(spot), 0);
  const best = near.slice(0, TRIED).map(of).reduce((a, b) => (count(b) > count(a) ? b : a));
  const [south, west, north, east] = holding(best), high = Math.max(0, LEAST_DEGREES - (north - south)) / 2, wide = Math.max(0, LEAST_DEGREES - (east - west)) / 2;
  return [south - high, west - wide, north + high, east + wide];
}

// The marks on the sheet. anew: what lies together may be other posts now; else they only move.
function marks(anew) {
  const box = $("spots");
  if (anew && box.matches(":active")) mapNews(); // a mark that went under a press takes its click along
  else if (anew) {
    const held = document.activeElement?.closest?.("#spots button")?.dataset.value;
    const groups = together();
    box.replaceChildren(...groups.map(mark));
    sheet.marks(groups.map(({ spots: [{ lat, lon }], kinds }) => ({ lat, lon, r: radius(posts({ kinds })) })));
    if (held) [...box.children].find((made) => made.dataset.value === held)?.focus({ preventScroll: true });
  }
  const { clientWidth: wide, clientHeight: high } = box;
  for (const made of box.children) {
    const [x, y] = sheet.place(Number(made.dataset.lat), Number(made.dataset.lon)), r = made.offsetWidth / 2 || 26;
    made.hidden = x < -r || y < -r || x > wide + r || y > high + r; // nobody steps to what nobody sees
    made.style.translate = `calc(${x.toFixed(1)}px - 50%) calc(${y.toFixed(1)}px - 50%)`;
  }
}

const radius = (n) => Math.min(26, 11 + 2 * Math.sqrt(n));

// Spots whose marks would lie on each other are one mark, where the biggest of them is.
function together() {
  const groups = [];
  for (const spot of found.spots) {
    const [x, y] = sheet.place(spot.lat, spot.lon), r = radius(posts(spot));
    const near = groups.find((group) => Math.hypot(group.x - x, group.y - y) < group.r + r - 6);
    if (!near) groups.push({ x, y, r, spots: [spot], kinds: { ...spot.kinds } });
    else {
      near.spots.push(spot);
      for (const [kind, n] of Object.entries(spot.kinds)) near.kinds[kind] = (near.kinds[kind] ?? 0) + n;
    }
  }
  return groups;
}

function mark({ spots, kinds }) {
  const [first] = spots, made = el("button", `spot${spots.every((spot) => spot.wide) ? " wide" : ""}`), all = posts({ kinds }), { need = 0, offer = 0 } = kinds;
  made.type = "button";
  made.dataset.lat = first.lat;
  made.dataset.lon = first.lon;
  made.dataset.value = first.area;
  const told = [[need, "need", "needs"], [offer, "offer", "offers"], [all - need - offer, "other", "others"]].filter(([n]) => n).map(([n, one, many]) => plural(n, one, many)).join(", ");
  const names = spots.map((spot) => (spot.name ? `${spot.name} (${Math.round(100 * (spot.confidence ?? 1))} % likely meant)` : around(spot.lat, spot.lon)));
  made.title = `${names.slice(0, 5).join("; ")}${names.length > 5 ? ` and ${number(names.length - 5)} more places` : ""}: ${told}${spots.length > 1 ? ". Nearer" : ""}`;
  made.setAttribute("aria-label", made.title);
  if (spots.length === 1) {
    made.dataset.set = "area"; // page.js leads to its posts
    made.setAttribute("aria-pressed", String(wanted.area === first.area));
  } else {
    const [south, west, north, east] = holding(spots), apart = Math.max(north - south, east - west);
    made.addEventListener("click", () => (apart > CLOSE_DEGREES ? sheet.fit([south, west, north, east]) : want({ area: told4([south - CLOSE_DEGREES, west - CLOSE_DEGREES, north + CLOSE_DEGREES, east + CLOSE_DEGREES]) })));
  }
  made.style.setProperty("--size", `${2 * radius(all)}px`);
  made.style.setProperty("--needs", `${(100 * need) / all}%`);
  made.style.setProperty("--offers", `${(100 * (need + offer)) / all}%`);
  made.append(el("span", "", number(all)));
  return made;
}

function holding(spots) {
  const [first] = spots, lons = spots.map((spot) => first.lon + ((spot.lon - first.lon + 540) % 360) - 180), lats = spots.map((spot) => spot.lat);
  return [Math.min(...lats), Math.min(...lons), Math.max(...lats), Math.max(...lons)];
}

$("place").addEventListener("submit", async (event) => {
  event.preventDefault();
  const area = $("place-name").value.trim();
  const question = ++lookedUp, before = wanted.area;
  say($("place-problem"), "");
  try {
    const { problem: wrong } = area ? await get(`/api/area?${new URLSearchParams({ area })}`) : {};
    if (question !== lookedUp || wanted.area !== before) return; // somebody chose another meanwhile
    if (wrong) say($("place-problem"), wrong);
    else want({ area });
  } catch (error) { problem(`The place could not be looked up: ${error.message}`); }
});
$("place-name").addEventListener("input", () => say($("place-problem"), ""));
$("only-here").addEventListener("click", () => {
  const area = told4(sheet.box());
  fitted = area; // it is what is looked at
  want({ area });
});
$("zoom-in").addEventListener("click", () => sheet.zoom(2));
$("zoom-out").addEventListener("click", () => sheet.zoom(0.5));
$("zoom-all").addEventListener("click", () => found.spots.length && sheet.fit(middle(found.spots)));
