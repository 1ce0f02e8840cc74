import { drawCharts } from "./chart.js";

// What a slider says stands beside it: <output data-shows="epsilon"> follows <input id="epsilon">.
function show(input) {
  for (const output of document.querySelectorAll(`[data-shows="${input.id}"]`)) {
    output.value = Number(input.value).toLocaleString("en", { maximumFractionDigits: 3 });
  }
}
document.addEventListener("input", (event) => { if (event.target.id) show(event.target); });
document.addEventListener("htmx:oobAfterSwap", (event) => drawCharts(event.target));
