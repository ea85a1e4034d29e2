// Keys: j and k move from row to row, Enter opens one, 1 to 3 press a button of the row. All of it works without.
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
  if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
  if (event.key === "j") move(1);
  else if (event.key === "k") move(-1);
  else if (event.key === "Enter" && event.target.matches("[data-row]")) event.target.querySelector("a")?.click();
  else if ("123".includes(event.key) && event.key.length === 1) {
    const row = document.activeElement.closest("[data-row]");
    row?.querySelector(`[data-key="${event.key}"]`)?.click();
  }
});
