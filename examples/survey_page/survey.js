// Ask, let the browser's coins answer, and draw what is known of everybody.
import { openCollection } from "./discreet-local.min.js";

const [WIDTH, HEIGHT, MOST] = [600, 220, 0.5];
const at = (id) => document.getElementById(id);
const buttons = [...at("answers").querySelectorAll("button")];
const percent = (share) => `${(100 * share).toFixed(1)}%`;
const pause = (seconds) => new Promise((resolve) => setTimeout(resolve, 1000 * seconds));

const parameters = await (await fetch("parameters")).json();
const collection = await openCollection(parameters);
at("chance").textContent = percent(Number(parameters.randomiser.keep) / 2 ** 64);

async function answer(value) {
  for (const button of buttons) button.disabled = true;
  const report = await collection.collect(value); // from here on nobody knows the answer
  if (!report) return;
  // Until they arrive the same bytes are sent again: they count once, and tell nothing more.
  while (!(await arrives(report))) await pause(2);
  const code = document.createElement("code");
  code.textContent = [...report].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  const said = parameters.values[report.at(-1)];
  at("told").replaceChildren(`The coins made it “${said}”. All that was sent: `, code);
}

async function arrives(report) {
  try {
    return (await fetch("reports", { method: "POST", body: report })).ok;
  } catch {
    return false; // there is no network
  }
}

async function offer() {
  const isOpen = (await collection.left()) > 0;
  for (const button of buttons) {
    button.disabled = !isOpen;
    button.addEventListener("click", () => answer(button.value));
  }
  if (!isOpen) at("told").textContent = "This browser has answered, and says no more.";
}

async function watch() {
  const seen = [];
  for (;;) {
    const { counts, minimum, published } = await (await fetch("estimate")).json();
    if (!published) {
      at("estimate").textContent = `${counts.accepted} answers; ${minimum} are needed.`;
    } else if (published.n !== seen.at(-1)?.n) {
      const yes = published.values.indexOf("yes");
      const [share, error] = ["counts", "standard_error"].map(
        (part) => published.estimate[part][yes] / published.n,
      );
      seen.push({ n: published.n, share, low: share - 2 * error, high: share + 2 * error });
      show(seen);
    }
    await pause(1);
  }
}

function show(seen) {
  const { n, share, low, high } = seen.at(-1);
  const ends = `between ${percent(Math.max(0, low))} and ${percent(Math.min(1, high))}`;
  at("estimate").textContent = `${percent(share)} of ${n.toLocaleString("en")} say yes: ${ends}.`;
  const place = (one, value) =>
    `${(WIDTH * one.n) / n},${HEIGHT * (1 - Math.min(1, Math.max(0, value / MOST)))}`;
  const ahead = seen.map((one) => place(one, one.low));
  const back = seen.map((one) => place(one, one.high)).reverse();
  at("chart").replaceChildren(
    shape("polygon", "band", [...ahead, ...back]),
    shape("polyline", "line", seen.map((one) => place(one, one.share))),
  );
}

function shape(kind, name, points) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", kind);
  made.setAttribute("class", name);
  made.setAttribute("points", points.join(" "));
  return made;
}

await Promise.all([offer(), watch()]);
