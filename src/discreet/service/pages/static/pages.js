// What every page does beyond its HTML. All of it works without, if less comfortably.
import { drawCharts } from "./chart.js";

const root = document.documentElement;

function isDark() {
  const chosen = root.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

for (const button of document.querySelectorAll("[data-theme-toggle]")) {
  button.hidden = false;
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    try { localStorage.setItem("theme", root.dataset.theme); } catch { /* for this page, then */ }
    document.dispatchEvent(new Event("theme"));
  });
}

// <button data-insert="income" data-into="question"> puts a name where the cursor is.
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-insert]");
  const field = button && document.getElementById(button.dataset.into);
  if (!field) return;
  field.setRangeText(button.dataset.insert, field.selectionStart, field.selectionEnd, "end");
  field.focus();
  field.dispatchEvent(new Event("input", { bubbles: true }));
});

// What follows from a form is out of date from the first key until it comes anew.
document.addEventListener("input", (event) => {
  const live = document.getElementById(event.target.form?.dataset.live ?? "");
  if (live) live.dataset.stale = "yes";
});
document.addEventListener("htmx:afterSettle", (event) => {
  delete event.target.dataset?.stale;
  for (const twin of document.querySelectorAll("[data-twin]")) twin.search = location.search;
});

// Control and Enter run what was priced.
document.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
  const live = document.getElementById(event.target.form?.dataset.live ?? "");
  if (live && !live.dataset.stale) live.querySelector("form[data-run]")?.requestSubmit();
});

// A form that is sent stays sent: its button rests until the answer comes.
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.method !== "post") return;
  if (form.closest("[data-stale]")) {  // nobody pays for what is not shown any more
    event.preventDefault();
    return;
  }
  for (const button of form.querySelectorAll("button")) button.setAttribute("aria-disabled", "true");
  if (form.dataset.sent) event.preventDefault();
  form.dataset.sent = "yes";
});
addEventListener("pageshow", () => {
  for (const form of document.querySelectorAll("form[data-sent]")) {
    delete form.dataset.sent;
    for (const button of form.querySelectorAll("button")) button.removeAttribute("aria-disabled");
  }
});

drawCharts(document);
document.addEventListener("htmx:afterSwap", (event) => drawCharts(event.target));
document.addEventListener("theme", () => drawCharts(document));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawCharts(document));
