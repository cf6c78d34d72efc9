// Everything beside the list, and what is chosen of it.
import { counted } from "./alerts.js";
import { problem } from "./asking.js";
import { drawClusters, proposals } from "./clusters.js";
import { $, el } from "./dom.js";
import { bars, figures, pipeline } from "./figures.js";
import { known } from "./known.js";
import { categories } from "./table.js";
import { FIELDS, query, wanted } from "./wanted.js";
import { areaName, language, number } from "./words.js";

export function drawBeside() {
  figures(known.state.stats, known.state.history);
  categories(known.state.categories, known.state.stats.open, wanted);
  counted();
  pipeline(known.state.stats);
  proposals(known.state.stats.proposals);
  bars("langs", known.state.stats.langs, "lang", language, wanted);
  bars("sources", known.state.stats.sources, "source", (s) => s, wanted);
  $("cluster-count").textContent = known.state.stats.clusters ? `of ${number(known.state.stats.clusters)}` : "";
  if (known.state.stats.problem !== "starting") problem(known.state.stats.problem, "figures");
  drawClusters();
}

// Chips, pressed buttons, the text field: all from `wanted`.
export function drawChoices() {
  const labels = known.labels();
  const name = { kind: (v) => `${v}s`, category: (v) => labels.get(v) ?? v, level: (v) => `${v}s`, lang: language, source: (v) => v, cluster: (v) => `cluster: ${known.clusters.get(v)?.label || v}`, priority: (v) => v, area: areaName, q: (v) => `contains “${v}”` };
  const set = FIELDS.filter((f) => wanted[f]);
  $("chips").hidden = !set.length;
  $("chips").replaceChildren(...set.map((f) => {
    const chip = el("button"), text = el("bdi", "", name[f](wanted[f]));
    chip.type = "button";
    chip.dataset.set = f;
    chip.dataset.value = wanted[f];
    chip.setAttribute("aria-label", `Remove filter ${f}: ${text.textContent}`);
    chip.append(text, el("span", "", "×"));
    return chip;
  }), ...(set.length > 1 ? [Object.assign(el("button", "", "Clear all"), { type: "button", id: "clear" })] : []));
  for (const button of document.querySelectorAll('.levels button, thead [data-set="kind"]')) {
    const { set: field, value } = button.dataset;
    button.setAttribute("aria-pressed", String(wanted[field] === value && !(field === "kind" && wanted.category)));
  }
  for (const form of $("take-csv") ? ["csv", "geojson"] : []) $(`take-${form}`).href = `/api/alerts.${form}?${query()}`;
  if (document.activeElement !== $("q")) $("q").value = wanted.q;
  if (document.activeElement !== $("search-text")) $("search-text").value = wanted.search;
}
