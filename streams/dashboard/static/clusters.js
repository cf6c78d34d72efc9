// Growing clusters, and those that an audit takes for one.
import { placed } from "./card.js";
import { $, choice, clone, el, styled, words } from "./dom.js";
import { known } from "./known.js";
import { want, wanted } from "./wanted.js";
import { language, plural, short, span } from "./words.js";

let drawn = "";
const asks = (c) => Object.keys(c.categories ?? {}).length > 0; // somebody in it needs, offers or warns
const rush = (c) => (c.burst >= 3 ? c.burst : 0); // as page_model.BURST: less is chance, then the biggest come first

export function drawClusters() {
  const labels = known.labels();
  const query = wanted.category && wanted.kind ? `${wanted.kind}.${wanted.category}` : "";
  const fits = (c) => (!wanted.lang || wanted.lang in (c.languages ?? {})) && (!wanted.source || wanted.source in (c.sources ?? {}))
    && (!(wanted.kind || wanted.category) || Object.keys(c.categories ?? {}).some((q) => q === query || (!query && (q.startsWith(`${wanted.kind}.`) || q.endsWith(`.${wanted.category}`)))));
  const shown = [...known.clusters.values()].filter((c) => c.posts > 1 && fits(c))
    .sort((a, b) => (b.cluster_id === wanted.cluster) - (a.cluster_id === wanted.cluster) || asks(b) - asks(a) || rush(b) - rush(a) || b.posts - a.posts).slice(0, 12);
  const key = JSON.stringify([shown.map((c) => [c.cluster_id, c.version, !c.medoid]), wanted.cluster, labels.size]);
  $("no-clusters").hidden = shown.length > 0;
  if (key === drawn || $("clusters").contains(document.activeElement)) return;
  drawn = key;
  const open = new Set([...$("clusters").querySelectorAll("details[open]")].map((d) => d.closest(".cluster").dataset.id));
  $("clusters").replaceChildren(...shown.map((c) => cluster(c, labels, open.has(c.cluster_id))));
}

// Clusters that come with alerts: by name alone, but for the one that is looked at.
export function learn(clusters = []) {
  for (const c of clusters) if (!known.clusters.get(c.cluster_id)?.medoid) known.clusters.set(c.cluster_id, c);
  drawClusters();
}

// A cluster that was merged goes on as another: so do the cards of its alerts, which nobody tells anew, and whoever looks at it.
export function merged({ cluster_id: gone, into }) {
  for (const made of $("list").children) {
    if (made.querySelector(".in-cluster").dataset.value !== gone) continue;
    made.dataset.crowd = made.dataset.crowd.replace(gone, into);
    placed(made, into, known.clusters);
  }
  if (wanted.cluster === gone) want({ cluster: into }, true);
}

function cluster(event, labels, wasOpen) {
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
