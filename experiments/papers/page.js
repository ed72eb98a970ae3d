// Draws the charts of a report. `uPlot` stands before it in the page; what is drawn is in the element `report`.
"use strict";

const COLOURS = ["#1668dc", "#d4380d", "#389e0d", "#722ed1", "#d48806", "#08979c", "#c41d7f", "#595959", "#7cb305", "#391085"];
const report = JSON.parse(document.getElementById("report").textContent);
const plots = [];
let errors = 0;

window.addEventListener("error", () => {
  errors += 1;
  mark();
});

// Where a test looks: `inked` are the charts on whose canvas a line or a point of theirs can be seen.
function mark() {
  const inked = plots.filter(({ plot, chart }) => isInked(plot, chart.series.length)).length;
  Object.assign(document.body.dataset, { drawn: plots.length, inked, errors, charts: report.charts.length });
}

function isInked(plot, count) {
  const { left, top, width, height } = plot.bbox;
  const { data } = plot.ctx.getImageData(left, top, width, height);
  const wanted = new Set(COLOURS.slice(0, count).map((colour) => parseInt(colour.slice(1), 16)));
  for (let at = 0; at < data.length; at += 4) {
    if (data[at + 3] === 255 && wanted.has((data[at] << 16) | (data[at + 1] << 8) | data[at + 2])) return true;
  }
  return false;
}

function short(number) {
  const size = Math.abs(number);
  if (size >= 1e9) return `${+(number / 1e9).toPrecision(3)} G`;
  if (size >= 1e6) return `${+(number / 1e6).toPrecision(3)} M`;
  if (size >= 1e4) return `${+(number / 1e3).toPrecision(3)} k`;
  return String(+number.toPrecision(4));
}

// One column of x, and one of y for each series, as uPlot wants them.
function columns(chart) {
  const xs = [...new Set(chart.series.flatMap((one) => one.points.map(([x]) => x)))].sort((a, b) => a - b);
  const column = (one, place) => {
    const values = new Map(one.points.map((point) => [point[0], point[place]]));
    // A logarithm has no place for zero.
    return xs.map((x) => (values.has(x) && (!chart.y.log || values.get(x) > 0) ? values.get(x) : null));
  };
  return [xs, ...chart.series.map((one) => column(one, 1)), ...spread(chart).flatMap(({ one }) => [column(one, 3), column(one, 2)])];
}

// The series whose lowest and highest values are drawn as a shade, each of which is two columns more.
function spread(chart) {
  if (chart.x.categories) return [];
  return chart.series.map((one, number) => ({ one, number })).filter(({ one }) => one.points[0].length === 4);
}

// A line where something happened, in the colour that the caption gives its kind.
function drawMarks(plot, marks) {
  const { ctx, bbox } = plot;
  ctx.save();
  for (const { x, kind } of marks) {
    const at = Math.round(plot.valToPos(x, "x", true));
    if (at < bbox.left || at > bbox.left + bbox.width) continue;
    ctx.strokeStyle = getComputedStyle(document.body).getPropertyValue(`--${kind}`);
    ctx.setLineDash(kind === "move" ? [2, 4] : []);
    ctx.beginPath();
    ctx.moveTo(at, bbox.top);
    ctx.lineTo(at, bbox.top + bbox.height);
    ctx.stroke();
  }
  ctx.restore();
}

// From lowest to highest at each point: between categories there is nothing to shade.
function drawReach(plot, chart) {
  const { ctx } = plot;
  ctx.save();
  chart.series.forEach((one, number) => {
    ctx.strokeStyle = COLOURS[number % COLOURS.length];
    for (const [x, , low, high] of one.points) {
      if (low === undefined || (chart.y.log && low <= 0)) continue;
      const at = plot.valToPos(x, "x", true);
      ctx.beginPath();
      ctx.moveTo(at, plot.valToPos(low, "y", true));
      ctx.lineTo(at, plot.valToPos(high, "y", true));
      ctx.stroke();
    }
  });
  ctx.restore();
}

function draw(chart) {
  const place = document.getElementById(`chart-${chart.name}`);
  const text = getComputedStyle(document.body).color;
  const grid = { stroke: "rgba(128, 128, 128, 0.25)", width: 1 };
  const banded = spread(chart);
  const first = chart.series.length + 1;
  const name = (value) => (chart.x.categories ? (chart.x.categories[value] ?? "") : short(value));
  const size = { width: Math.max(280, place.clientWidth), height: 320 };
  const options = {
    ...size,
    scales: {
      x: { time: false, distr: chart.x.log ? 3 : 1 },
      y: { distr: chart.y.log ? 3 : 1, range: chart.y.log ? undefined : (_, min, max) => [Math.min(0, min), max * 1.05 || 1] },
    },
    axes: [
      { stroke: text, grid, label: chart.x.label, values: (_, ticks) => ticks.map((one) => (one === null ? "" : name(one))) },
      { stroke: text, grid, label: chart.y.label, size: 70, values: (_, ticks) => ticks.map((one) => (one === null ? "" : short(one))) },
    ],
    series: [
      { label: chart.x.label, value: (_, value) => (value === null ? "" : name(value)) },
      ...chart.series.map((one, number) => ({
        label: one.name,
        stroke: COLOURS[number % COLOURS.length],
        width: 2,
        spanGaps: true,
        points: { show: true, size: 6 },
        ...(chart.x.categories ? { paths: () => null } : {}),
        value: (_, value) => (value === null ? "" : short(value)),
      })),
      ...banded.flatMap(() => [{ points: { show: false } }, { points: { show: false } }]),
    ],
    bands: banded.map(({ number }, place) => ({
      series: [first + 2 * place, first + 2 * place + 1],
      fill: `${COLOURS[number % COLOURS.length]}40`,
    })),
    hooks: {
      drawClear: [(plot) => drawMarks(plot, chart.marks)],
      draw: chart.x.categories ? [(plot) => drawReach(plot, chart)] : [],
    },
  };
  // The legend is of what the chart is about.
  banded.forEach((_, place) => [0, 1].forEach((edge) => (options.series[first + 2 * place + edge].class = "edge")));
  if (chart.x.categories) options.axes[0].splits = () => chart.x.categories.map((_, number) => number);
  const plot = new uPlot(options, columns(chart), place);
  // In the frame that follows: a size that is set while sizes are observed is an error in the page.
  const fit = () => plot.setSize({ width: Math.max(280, place.clientWidth), height: 320 });
  new ResizeObserver(() => requestAnimationFrame(fit)).observe(place);
  plots.push({ plot, chart });
}

// Marks until all can be seen, or for some seconds: no frame need come where nobody looks, as in a browser without a screen on a busy machine.
function markUntilDrawn(left) {
  mark();
  if (left > 0 && document.body.dataset.inked !== String(plots.length)) setTimeout(() => markUntilDrawn(left - 1), 100);
}

report.charts.forEach(draw);
// The plots draw behind this script.
setTimeout(() => markUntilDrawn(50));
