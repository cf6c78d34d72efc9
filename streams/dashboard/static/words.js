// Numbers, times and names as people read them.
const LANGUAGES = new Intl.DisplayNames(["en"], { type: "language", fallback: "none" });
const NUMBER = new Intl.NumberFormat("en");
const SHORT = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const CLOCK = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hour12: false });
const DAY = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", hour12: false });
const FULL = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "long" });

export const number = (n) => NUMBER.format(n);
export const short = (n) => (n < 10000 ? NUMBER.format(n) : SHORT.format(n));
export const plural = (n, one, many) => `${number(n)} ${n === 1 ? one : many}`;
export const full = (ms) => FULL.format(ms);

export function language(code) {
  if (!code || code === "und") return "unknown language";
  try { return LANGUAGES.of(code) ?? code; } catch { return code; }
}

// How sure an alert is, as streams/outputs/sureness.py says it: `lead` in the card's head; `value`, `held` and `under` beside
// the meter. What is held against the bar leads: nothing that alerts looks as if it were below it.
export function sureness({ kind, score, threshold, probability, evidence }) {
  const terms = evidence.terms ?? {}, percent = (p) => `${Math.round(100 * p)} %`, reaches = score >= threshold;
  const below = (told, bar, floored) => (!reaches && told === bar ? floored : told); // "50 % < 50 %" says nothing
  const likely = probability == null ? "" : percent(probability), held = (bar) => ` ${reaches ? "≥" : "<"} ${bar}`;
  if (!("head" in terms || "gate" in terms)) { // terms that only a learnt head has
    return {
      lead: likely && `${likely} likely`, good: probability >= 0.5, value: below(score.toFixed(2), threshold.toFixed(2), (Math.round(100 * threshold - 1) / 100).toFixed(2)), held: held(threshold.toFixed(2)), under: "",
      title: `${score.toFixed(2)}: how close the post is to the query, which alerts from ${threshold.toFixed(2)}${likely && `. ${likely}: how likely a post at this score is right`}`,
    };
  }
  const bar = percent(threshold), value = below(percent(score), bar, `${Math.round(100 * threshold) - 1} %`), told = { good: reaches, value, held: held(bar), under: "" };
  const as = { need: "a need", offer: "an offer" }[kind];
  if (!as || !("head" in terms)) { // a notice, or a query the head was never taught
    const less = as && likely && likely !== value ? `${likely} as ${as}` : "";
    return {
      ...told, lead: `${value} under this category`, under: less,
      title: `${value}: how likely this category is right for the post; it alerts from ${bar}${less && `. ${likely}: how likely it is ${as}, and not the other way round`}`,
    };
  }
  return {
    ...told, lead: `${value} a need or offer`, under: likely && `${likely} under this category`,
    title: `${value}: how likely anybody can act on the post, whichever category it is; it alerts from ${bar}${likely && `. ${likely}: how likely this category is the right one`}`,
  };
}

export function rate(perSecond) {
  return perSecond >= 100 ? short(Math.round(perSecond)) : perSecond.toFixed(1);
}

export function duration(ms) {
  if (ms == null) return "–";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  return ms < 60000 ? `${(ms / 1000).toFixed(1)} s` : `${Math.round(ms / 60000)} min`;
}

let ahead = 0; // ms that this machine's clock is before the server's

// The server's time, which posts are told by: a laptop's clock may be an hour off, and what is new would be old.
export const serverNow = () => Date.now() - ahead;

// Take the time the server just told, in seconds (0: none yet). → how far this machine's clock is off, where that is over a minute.
export function clock(at) {
  if (at) ahead = Date.now() - 1000 * at;
  return Math.abs(ahead) > 60000 ? `this machine’s clock is ${duration(Math.abs(ahead))} ${ahead < 0 ? "behind" : "ahead"}` : "";
}

export function ago(ms, now = serverNow()) {
  const s = Math.max(0, Math.round((now - ms) / 1000));
  if (s < 5) return "now";
  if (s < 60) return `${s} s ago`;
  if (s < 3600) return `${Math.floor(s / 60)} min ago`;
  return s < 86400 ? `${Math.floor(s / 3600)} h ago` : DAY.format(ms);
}

export const around = (lat, lon) => `around ${lat.toFixed(2)}, ${lon.toFixed(2)}`;

const KM_A_DEGREE = 111.2, named = new Map(); // areas that were made here of a place → its name

// The area (Filter.area) that reaches so many kilometres from a point; name: what is there.
export function areaAround(lat, lon, km, name = "") {
  const high = km / KM_A_DEGREE, wide = high / Math.max(Math.cos((lat * Math.PI) / 180), 0.01), turned = (d) => (d < -180 ? d + 360 : d > 180 ? d - 360 : d);
  const [west, east] = wide >= 180 ? [-180, 180] : [turned(lon - wide), turned(lon + wide)];
  const area = [Math.max(-90, lat - high), west, Math.min(90, lat + high), east].map((d) => +d.toFixed(4)).join(",");
  if (name) named.set(area, name);
  return area;
}

// An area as people say it: in the place of that name, or around the middle of a box.
export function areaName(area) {
  if (named.has(area)) return `in ${named.get(area)}`;
  const [south, west, north, east, ...more] = area.split(",").map(Number);
  if (more.length || ![south, west, north, east].every(Number.isFinite)) return `in ${area}`;
  const lon = west + ((((east - west) % 360) + 360) % 360) / 2;
  return around((south + north) / 2, lon > 180 ? lon - 360 : lon);
}

// From one time to another; the day is said once.
export function span(from, to, now = serverNow()) {
  const [a, b] = [moment(from, now), moment(to, now)];
  if (a === b) return a;
  return new Date(from).toDateString() === new Date(to).toDateString() ? `${a} – ${CLOCK.format(to)}` : `${a} – ${b}`;
}

// When something happened: the clock time today, with the day otherwise.
export function moment(ms, now = serverNow()) {
  return new Date(ms).toDateString() === new Date(now).toDateString() ? CLOCK.format(ms) : DAY.format(ms);
}
