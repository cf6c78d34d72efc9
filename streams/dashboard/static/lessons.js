// Teaching from the list: a verdict on a card, and where it goes on from there.
import { group, recount, settle } from "./alerts.js";
import { get, problem } from "./asking.js";
import { $ } from "./dom.js";
import { known } from "./known.js";
import { asked, judge, taught, undo } from "./teach.js";
import { cards, stand } from "./walking.js";

export async function lessons() {
  try {
    const all = await get("/api/taught"), made = [...$("list").children];
    taught(all, made, known.state.categories);
    asked(all.ask, made);
    settle();
    await recount();
  } catch (error) { problem(`What was taught could not be fetched: ${error.message}`); }
}

export async function teach(made, verdict) {
  try {
    if (!await judge(made, verdict, known.state.categories)) return;
    const on = document.activeElement, all = cards(), next = all[all.indexOf(made) + 1] ?? made;
    if (made.classList.contains("judged")) made.classList.remove("whole");
    group(); // what is moved loses the focus
    const face = made.classList.contains("crowded") && cards().find((one) => one.matches(":not(.judged)") && one.dataset.crowd === made.dataset.crowd);
    if (on === made) stand(face || next); // of a crowd all are judged before it goes on
    else if (made.contains(on)) on.focus({ preventScroll: true });
  } catch (error) { problem(`Not taught: ${error.message}`); }
}

$("lessons").addEventListener("click", async (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  try {
    await undo(button.dataset);
    await lessons();
  } catch (error) { problem(`Not taken back: ${error.message}`); }
});
$("ask").addEventListener("click", () => {
  stand(document.querySelector("#list > .card.asked"));
});
