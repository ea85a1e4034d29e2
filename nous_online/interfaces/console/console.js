// Keys: j and k move from row to row, Enter opens one, 1 to 7 press a button of the row. A page that shows how things
// stand shows itself anew when something changed, unless somebody is typing in it. All of it works without.
"use strict";
const rows = () => [...document.querySelectorAll("[data-row]")];
const isTyping = (target) => target.closest("input, select, textarea") !== null;

function move(step) {
  const all = rows();
  const at = all.indexOf(document.activeElement.closest("[data-row]"));
  const next = all[Math.max(0, Math.min(all.length - 1, at + step))];
  if (next) next.focus();
}

document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.isComposing && event.target.matches("[data-enter]")) {
    event.preventDefault();
    event.target.form.querySelector(`[data-key="${event.target.dataset.enter}"]`).click();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
  if (event.key === "j") move(1);
  else if (event.key === "k") move(-1);
  else if (event.key === "Enter" && event.target.matches("[data-row]")) event.target.querySelector("a")?.click();
  else if ("1234567".includes(event.key) && event.key.length === 1) {
    const row = document.activeElement.closest("[data-row]");
    row?.querySelector(`[data-key="${event.key}"]`)?.click();
  }
});

const main = document.getElementById("main");
let isStale = false;
const isBusy = () =>
  document.hidden || isTyping(document.activeElement) || [...main.querySelectorAll("input:not([type=hidden])")].some((field) => field.value !== field.defaultValue);

async function refresh() {
  isStale = isBusy();
  if (isStale) return;
  const answer = await fetch(location.pathname + location.search, { headers: { Accept: "text/html" } });
  if (!answer.ok || isBusy()) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const at = rows().indexOf(document.activeElement.closest("[data-row]"));
  const inside = main.contains(document.activeElement) && at < 0;
  if (inside) return;
  main.replaceChildren(...page.getElementById("main").childNodes);
  if (at >= 0) rows()[Math.min(at, rows().length - 1)]?.focus();
  document.getElementById("news").textContent = "This page was brought up to date.";
}

if (main.hasAttribute("data-live")) {
  new EventSource("/events").addEventListener("message", refresh);
  for (const moment of ["visibilitychange", "focusout"]) document.addEventListener(moment, () => isStale && setTimeout(refresh, 100));
}
