// Asking the dashboard for something, and saying where that failed.
import { $ } from "./dom.js";

async function asked(path, options) {
  const answer = await fetch(path, options);
  if (answer.status === 401) location.reload();
  if (!answer.ok) throw new Error((await answer.text()).trim() || answer.statusText);
  return answer;
}

export async function get(path) { return (await asked(path, { headers: { Accept: "application/json" } })).json(); }

export async function post(path, body) {
  const answer = await asked(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
  return answer.status === 204 ? null : answer.json();
}

export function problem(text) {
  const told = $("problem").firstElementChild;
  if (told.textContent !== text) told.textContent = text;
  $("problem").hidden = !text;
}

$("problem").lastElementChild.addEventListener("click", () => problem(""));
