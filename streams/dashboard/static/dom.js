// Elements: found, made and filled. Text written by strangers only ever goes through textContent; links were checked by the
// server and are checked again here.
export const $ = (id) => document.getElementById(id);

export function clone(id) { return $(id).content.firstElementChild.cloneNode(true); }

export function say(element, text) { if (element.textContent !== text) element.textContent = text; }

export function el(tag, className = "", text = "") {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text) made.textContent = text;
  return made;
}

export function choice(button, value) { button.dataset.value = value ?? ""; }

export function link(anchor, url) {
  if (/^(https?:\/\/|\/open\?)/i.test(url ?? "")) {
    anchor.href = url;
    anchor.title = url.startsWith("/") ? "" : anchor.host; // where it leads, before anybody goes; nothing where the address has none
  } else anchor.textContent = "";
}

export const AID = ["need", "offer"]; // the kinds of a category that is no notice
const KINDS = { need: "Need", offer: "Offer", warning: "Warning", order: "Order", report: "Report" };
export const words = (kind) => KINDS[kind] ?? kind;
export const styled = (kind) => (kind === "need" || kind === "offer" ? kind : "notice");
