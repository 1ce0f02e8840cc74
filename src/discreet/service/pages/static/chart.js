// Charts over uPlot, in the colours of the page.
//
// <figure data-chart='{"x": [...], "series": [{"label", "y", "low"?, "high"?, "dash"?, "points"?}],
//                      "x_label"?, "y_label"?, "kind"?: "line" | "bars", "x_log"?, "y_log"?,
//                      "time"?: true, "y_range"?: [low, high]}'>
// `low` and `high` are the ends of an interval around each point: a band around a line, error bars
// around bars and points. A script may also call drawChart(figure, spec) again and again.

const library = new URL("./vendor/uplot.min.js", import.meta.url);
let loading = null;

function load() {
  loading ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = library;
    script.onload = () => resolve(window.uPlot);
    script.onerror = reject;
    document.head.append(script);
  });
  return loading;
}

export function colour(name, element = document.body) {
  const probe = document.createElement("i");
  probe.hidden = true;
  probe.style.color = `var(--${name})`;
  element.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

function faded(shade, alpha) {
  return shade.startsWith("rgb(") ? shade.replace("rgb(", "rgba(").replace(")", `, ${alpha})`) : shade;
}

const SERIES = ["series-1", "series-2", "series-3", "series-4", "series-5"];

// Times of day and dates as they are written everywhere; see uPlot's axis.values.
const TIMES = [
  [31536000, "{YYYY}", null, null, null, null, null, null, 1],
  [2419200, "{MMM}", "\n{YYYY}", null, null, null, null, null, 1],
  [86400, "{D} {MMM}", "\n{YYYY}", null, null, null, null, null, 1],
  [60, "{HH}:{mm}", "\n{D} {MMM} {YYYY}", null, "\n{D} {MMM}", null, null, null, 1],
  [1, ":{ss}", "\n{D} {MMM} {HH}:{mm}", null, "\n{D} {MMM} {HH}:{mm}", null, "\n{HH}:{mm}", null, 1],
];

// Ends of intervals as short strokes, over whatever was drawn.
function errorBars(spec) {
  return (chart) => {
    const { ctx } = chart;
    ctx.save();
    ctx.lineWidth = 1.5 * devicePixelRatio;
    ctx.setLineDash([]);  // what was drawn last may have left one
    spec.series.forEach((one, i) => {
      if (!one.low || one.band) return;
      ctx.strokeStyle = spec.kind === "bars" ? colour("ink") : colour(SERIES[i % SERIES.length]);
      spec.x.forEach((x, at) => {
        if (one.low[at] == null || one.high[at] == null) return;
        const across = chart.valToPos(x, "x", true);
        const from = chart.valToPos(one.low[at], "y", true);
        const to = chart.valToPos(one.high[at], "y", true);
        const cap = 4 * devicePixelRatio;
        ctx.beginPath();
        ctx.moveTo(across, from); ctx.lineTo(across, to);
        ctx.moveTo(across - cap, from); ctx.lineTo(across + cap, from);
        ctx.moveTo(across - cap, to); ctx.lineTo(across + cap, to);
        ctx.stroke();
      });
    });
    ctx.restore();
  };
}

function options(spec, uPlot, width) {
  const quiet = colour("quiet"), rule = colour("rule");
  const axis = (label, more) => ({
    stroke: quiet, grid: { stroke: rule, width: 1 }, ticks: { stroke: rule, width: 1 },
    font: "12px system-ui, sans-serif", label: label || undefined,
    labelFont: "12px system-ui, sans-serif", labelSize: label ? 22 : 0, ...more,
  });
  const series = [{ label: spec.x_label || "" }], bands = [];
  spec.series.forEach((one, i) => {
    const shade = colour(SERIES[i % SERIES.length]);
    const own = series.length;
    series.push({
      label: one.label, stroke: shade, width: one.points ? 0 : 2, dash: one.dash ? [6, 5] : undefined,
      fill: spec.kind === "bars" ? faded(shade, 0.75) : undefined,
      paths: spec.kind === "bars" ? uPlot.paths.bars({ size: [0.7, 64] })
        : one.steps ? uPlot.paths.stepped({ align: 1 }) : undefined,
      points: { show: Boolean(one.points), size: 8, fill: shade },
      value: (_, value) => (value == null ? "" : Number(value.toPrecision(4)).toLocaleString("en")),
    });
    if (one.band) {
      series.push({ label: `${one.label}, upper`, class: "edge", stroke: "transparent", points: { show: false } });
      series.push({ label: `${one.label}, lower`, class: "edge", stroke: "transparent", points: { show: false } });
      bands.push({ series: [own + 1, own + 2], fill: faded(shade, 0.18) });
    }
  });
  const dates = spec.time ? { values: TIMES } : {};
  const xs = spec.categories ? { values: (_, at) => at.map((i) => spec.categories[i] ?? "") } : {};
  return {
    width, height: spec.height || 260, series, bands,
    legend: { show: spec.series.length > 1, live: false, markers: { width: 3 } },
    cursor: { show: !spec.still, y: false, drag: { x: false, y: false } },
    scales: {
      x: { time: Boolean(spec.time), distr: spec.x_log ? 3 : 1,
           range: spec.categories ? [-0.6, spec.x.length - 0.4] : spec.x_range },
      y: { distr: spec.y_log ? 3 : 1, range: spec.y_range },
    },
    axes: [axis(spec.x_label, spec.categories ? { ...xs, incrs: [1], space: 10, grid: { show: false } } : dates),
           axis(spec.y_label, { size: 62 })],
    hooks: { draw: [errorBars(spec)] },
  };
}

function columns(spec) {
  const found = [spec.x];
  for (const one of spec.series) {
    found.push(one.y);
    if (one.band) found.push(one.high, one.low);
  }
  return found;
}

const drawn = new WeakMap();

export async function drawChart(figure, told) {
  const uPlot = await load();
  const spec = { ...told, series: told.series.map((one) => ({ ...one,
    band: Boolean(one.low) && told.kind !== "bars" && !one.points })) };
  const place = figure.querySelector(".canvas") || figure;
  const before = drawn.get(figure);
  if (before && before.same === shape(spec)) {  // new data only: nothing flickers
    before.chart.setData(columns(spec));
    return before.chart;
  }
  if (before) before.chart.destroy();
  place.replaceChildren();
  const chart = new uPlot(options(spec, uPlot, place.clientWidth || 320), columns(spec), place);
  for (const one of place.querySelectorAll("canvas")) {
    one.setAttribute("role", "img");
    one.setAttribute("aria-label", figure.getAttribute("aria-label") || "");
  }
  drawn.set(figure, { chart, same: shape(spec) });
  sizes.observe(place);
  charts.set(place, chart);
  return chart;
}

// What a chart looks like, its numbers aside. Error bars are drawn from the numbers themselves.
function shape(spec) {
  const bars = spec.series.some((one) => one.low && !one.band);
  return JSON.stringify([
    spec.series.map((one) => [one.label, one.dash, one.points, one.band, one.steps]),
    { ...spec, x: null, series: null }, colour("ink"), bars ? spec : null,
  ]);
}

const charts = new WeakMap();
const sizes = new ResizeObserver((entries) => {
  for (const { target, contentRect } of entries) {
    const chart = charts.get(target);
    if (chart && Math.abs(chart.width - contentRect.width) > 1) {
      chart.setSize({ width: contentRect.width, height: chart.height });
    }
  }
});

export function drawCharts(within) {
  const figures = [...within.querySelectorAll("[data-chart]")];
  if (within.matches?.("[data-chart]")) figures.push(within);
  for (const figure of figures) drawChart(figure, JSON.parse(figure.dataset.chart));
}
