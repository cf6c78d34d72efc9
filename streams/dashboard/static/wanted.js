// What is wanted of all there is: it stands in the address, so that a view can be sent to somebody.
export const FIELDS = ["kind", "category", "level", "lang", "source", "cluster", "priority", "area", "q"];
const ALL = [...FIELDS, "search", "map"];

export let wanted = fromAddress();
let changed = () => {};

// What follows where something else is wanted.
export function onWanted(then) { changed = then; }

function fromAddress() {
  const params = new URLSearchParams(location.search);
  return Object.fromEntries(ALL.map((f) => [f, params.get(f) ?? ""]));
}

export function query(fields = FIELDS, more = {}) {
  const params = new URLSearchParams(more);
  for (const f of fields) if (wanted[f]) params.set(f, wanted[f]);
  return params.toString();
}

export function want(patch, replace = false) {
  wanted = { ...wanted, ...patch };
  const params = query(ALL);
  history[replace ? "replaceState" : "pushState"](null, "", params ? `?${params}` : location.pathname);
  changed();
}

export function clear() { want({ ...Object.fromEntries(FIELDS.map((f) => [f, ""])), search: "" }); }

addEventListener("popstate", () => {
  const before = query(ALL);
  wanted = fromAddress();
  if (query(ALL) !== before) changed(); // the skip link changes the address too
});
