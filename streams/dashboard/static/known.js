// What the page knows: the state as it was last told, and the clusters, which events keep up.
import { $ } from "./dom.js";

export const given = JSON.parse($("data").textContent); // with the page itself

export const known = {
  state: given.state,
  clusters: new Map(),
  labels: () => new Map(known.state.categories.map((c) => [c.category, c.label])),
  take(state) {
    known.state = state;
    known.clusters = new Map(state.clusters.map((c) => [c.cluster_id, c]));
  },
};
known.take(given.state);
