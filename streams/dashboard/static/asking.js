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

const told = { figures: "", page: "" }; // what the dashboard says of itself each second, and what failed here

// Say what is wrong, or with "" that it is no longer. It stays until then, or until somebody puts it away.
export function problem(text, from = "page") {
  if (told[from] === text) return;
  told[from] = text;
  shown(told.figures || told.page);
}

function shown(text) {
  $("problem").firstElementChild.textContent = text;
  $("problem").hidden = !text;
}

$("problem").lastElementChild.addEventListener("click", () => { told.page = ""; shown(""); });
