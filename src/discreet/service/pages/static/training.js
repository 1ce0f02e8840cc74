// The training as it goes: each server-sent event is one step of the real trainer.
import { drawChart } from "./chart.js";

const form = document.getElementById("choosing");
const train = document.getElementById("train"), stop = document.getElementById("stop");
const status = document.getElementById("status"), curves = document.getElementById("curves");
const GHOSTS = 24;
let source = null;

train.hidden = stop.hidden = false;

// Of epsilon and noise one leads: the one that was moved last. The other one follows the accountant.
for (const name of ["epsilon", "noise"]) {
  document.getElementById(name).addEventListener("input", () => {
    form.querySelector(`[name=by][value=${name}]`).checked = true;
  });
}
document.addEventListener("htmx:afterSwap", () => {
  const plan = document.getElementById("plan");
  const follower = form.querySelector("[name=by]:checked").value === "noise" ? "epsilon" : "noise";
  const found = Number(plan.dataset[follower]);
  if (!found) return;
  document.getElementById(follower).value = found;
  for (const output of form.querySelectorAll(`[data-shows=${follower}]`)) output.value = say(found);
});

function say(number) {
  return Number(number.toPrecision(3)).toLocaleString("en", { maximumFractionDigits: 4 });
}

function place(line, ends) {
  line.setAttribute("visibility", ends ? "visible" : "hidden");
  if (ends) ["x1", "y1", "x2", "y2"].forEach((name, i) => line.setAttribute(name, ends[i]));
}

function show(kind, told) {
  const figure = document.querySelector(`[data-learner=${kind}]`);
  const line = figure.querySelector(".boundary"), ghosts = figure.querySelector(".ghosts");
  if (line.getAttribute("visibility") !== "hidden") {
    const ghost = line.cloneNode();
    ghost.removeAttribute("class");
    ghosts.append(ghost);
    while (ghosts.children.length > GHOSTS) ghosts.firstChild.remove();
  }
  place(line, told.line);
  figure.querySelector("[data-value=accuracy]").textContent = `${Math.floor(told.accuracy * 100)}%`;
  figure.querySelector("[data-value=loss]").textContent = say(told.loss);
}

function draw(taken, paid) {
  const x = taken.map((one) => one.step);
  const pair = (name) => [["SGD", "plain"], ["DP-SGD", "private"]].map(([label, kind]) =>
    ({ label, y: taken.map((one) => one[kind][name]) }));
  const figure = (name) => document.querySelector(`[data-curve=${name}]`);
  const both = { x_label: "steps", height: 190 };
  drawChart(figure("loss"), { ...both, x, series: pair("loss"), y_label: "loss" });
  drawChart(figure("accuracy"), { ...both, x, series: pair("accuracy"), y_label: "accuracy" });
  drawChart(figure("epsilon"), { ...both, y_label: "epsilon", x: paid.map((one) => one.step),
    series: [{ label: "epsilon", y: paid.map((one) => one.private.epsilon) }] });
}

function end(words) {
  source?.close();
  source = null;
  train.disabled = false;
  stop.disabled = true;
  if (words) status.textContent = words;
}

function begin() {
  const taken = [], paid = [];
  let redraw = () => {};
  for (const one of document.querySelectorAll(".ghosts")) one.replaceChildren();
  for (const one of document.querySelectorAll(".boundary")) place(one, null);
  for (const one of document.querySelectorAll("[data-curve]")) delete one.dataset.chart;
  train.disabled = true;
  stop.disabled = false;
  status.textContent = "The trainer is on its way. It loads torch first, which may take some seconds.";
  redraw = () => { if (taken.length > 1) draw(taken, paid); };
  document.addEventListener("theme", redraw);
  source = new EventSource(`${form.dataset.steps}?${new URLSearchParams(new FormData(form))}`);
  source.onmessage = ({ data }) => {
    const event = JSON.parse(data);
    if (event.kind === "waiting") return;
    if (event.kind === "finished") {
      redraw();
      document.querySelector("[data-value=epsilon]").textContent = say(event.epsilon);
      end(`Finished: ${event.told}.`);
      return;
    }
    if (!taken.length) status.textContent = "Training.";
    curves.hidden = false;
    taken.push(event);
    show("plain", event.plain);
    show("private", event.private);
    if (event.private.epsilon !== null) {
      paid.push(event);
      document.querySelector("[data-value=epsilon]").textContent = say(event.private.epsilon);
    }
    if (taken.length % 4 === 2) redraw();
  };
  source.addEventListener("problem", ({ data }) => end(JSON.parse(data).detail));
  source.onerror = () => end("The training was cut off. Press Train to begin again.");
}

train.addEventListener("click", begin);
stop.addEventListener("click", () => end("Stopped."));
addEventListener("pagehide", () => source?.close());
