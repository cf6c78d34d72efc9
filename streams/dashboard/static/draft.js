// A new query: what it would have alerted, then saved. Text only by textContent.
import { post } from "./asking.js";
import { $, el } from "./dom.js";
import { duration, language, moment, number, plural, serverNow } from "./words.js";

const listed = (text) => text.split(",").map((part) => part.trim()).filter(Boolean);

// The form as the dashboard takes it; what is empty is left out.
function draft(form) {
  const given = Object.fromEntries(new FormData(form)), where = {}, filled = (name) => given[name].trim() !== "";
  for (const name of ["languages", "sources", "must", "must_not"]) if (filled(name)) where[name] = listed(given[name]);
  return {
    query_id: `${given.kind}.${given.category.trim().toLowerCase()}`,
    sentences: given.sentences.split("\n").map((line) => line.trim()).filter(Boolean),
    lang: given.lang.trim(),
    where,
    ...(filled("area") ? { area: given.area.trim() } : {}),
    last_h: Number(given.last_h),
    ...Object.fromEntries(["probability", "target_precision"].filter(filled).map((name) => [name, Number(given[name]) / 100])),
    ...(filled("alerts_per_hour") ? { alerts_per_hour: Number(given.alerts_per_hour) } : {}),
    ...(filled("expires") ? { expires: new Date(serverNow() + 3600000 * Number(given.expires)).toISOString() } : {}),
  };
}

// What a trial found, in words.
function told(found) {
  if (!found.posts) return "No post of the last hours is here to try it on. Nothing was saved.";
  const alerts = `${plural(found.alerts, "alert", "alerts")} and ${plural(found.suggestions, "suggestion", "suggestions")} in ${plural(found.posts, "post", "posts")}`;
  const rate = found.alerts_an_hour.toFixed(1), cost = found.hours < 1
    ? `${alerts} of the last ${duration(3600000 * found.hours)}: ${rate} to read in an hour if it goes on so`
    : `${alerts} of ${found.hours.toFixed(1)} h: ${rate} to read an hour`;
  return [`${cost}, ${found.cpu_s_an_hour.toFixed(3)} s of CPU. ${number(found.already)} of them alert for another query too.`, found.unheard, found.place && `The area is ${found.place}.`, "Nothing was saved."].filter(Boolean).join(" ");
}

function show(found) {
  $("draft-told").textContent = told(found);
  const most = Math.max(1, ...Object.values(found.by_hour));
  $("draft-hours").replaceChildren(...Object.entries(found.by_hour).map(([at, n]) => {
    const item = el("li"), line = el("span", "rest"), track = el("span", "track"), fill = el("span", "fill");
    fill.style.width = `${(100 * n) / most}%`;
    track.append(fill);
    line.append(el("bdi", "", moment(Date.parse(at))), track, el("span", "", number(n)));
    item.append(line);
    return item;
  }));
  $("draft-alerts").replaceChildren(...found.examples.map((one) => {
    const item = el("li"), text = el("bdi", "", one.text);
    text.dir = "auto";
    text.lang = one.lang;
    item.append(el("b", "", `${Math.round(100 * one.probability)} %`), " ", text, el("small", "", ` ${language(one.lang)} · ${moment(Date.parse(one.created_at))}`));
    return item;
  }));
}

$("draft").addEventListener("submit", async (event) => {
  event.preventDefault();
  const saves = event.submitter?.value === "save", buttons = event.target.querySelectorAll("button");
  $("draft-told").textContent = saves ? "Saving …" : "Reading the posts of the last hours …";
  for (const button of buttons) button.disabled = true;
  try {
    const wanted = draft(event.target);
    if (saves) {
      const made = await post("/api/queries", wanted);
      $("draft-told").textContent = `${made.id} is live.${made.where?.place ? ` It reads posts from ${made.where.place}, or naming a place there.` : ""}`;
    } else show(await post("/api/queries/try", wanted));
  } catch (error) {
    $("draft-told").textContent = `Not ${saves ? "saved" : "tried"}: ${error.message}`;
  } finally {
    for (const button of buttons) button.disabled = false;
  }
});
