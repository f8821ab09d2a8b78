// Draws the charts of a page with uPlot from the tables below them, and again when
// the tables change. Colors come from the stylesheet, so that they follow light and
// dark mode; gaps in the data are gaps in the chart.

const { uPlot } = globalThis;
const charts = new Map(); // by plot element
const folded = new WeakSet(); // tables that were collapsed once; afterwards the user decides
const resized = new ResizeObserver((entries) => {
  for (const { target, contentRect } of entries) {
    const chart = charts.get(target)?.picture;
    if (chart && contentRect.width > 0) chart.setSize({ width: Math.floor(contentRect.width), height: chart.height });
  }
});
const height = 232;
const minute = 60, day = 86_400; // seconds

drawAll();
document.addEventListener("kuota:merged", drawAll);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolour);
addEventListener("beforeprint", () => { document.documentElement.classList.add("on-paper"); recolour(); });
addEventListener("afterprint", () => { document.documentElement.classList.remove("on-paper"); recolour(); });

function drawAll() {
  for (const [plot, chart] of charts) if (!plot.isConnected) drop(plot, chart);
  for (const plot of document.querySelectorAll(".chart-plot")) draw(plot);
}

function recolour() {
  for (const [plot, chart] of [...charts]) {
    drop(plot, chart);
    draw(plot);
  }
}

function drop(plot, chart) {
  resized.unobserve(plot);
  chart.picture.destroy();
  plot.replaceChildren();
  charts.delete(plot);
}

// draw updates a chart from its table. It only replaces the data if the series are
// the same.
function draw(plot) {
  const figure = plot.closest(".chart");
  const read = figuresOf(figure);
  const had = charts.get(plot);
  if (had && had.lines === read.lines) {
    if (had.values === read.values) return;
    Object.assign(had, read);
    had.picture.setData(stacked(read));
    tell(had, had.words, had.rows[had.picture.cursor.idx] ?? null); // uPlot sets a cursor only where there is one
    return;
  }
  if (had) drop(plot, had);
  const table = figure.querySelector("details.chart-figures");
  if (!folded.has(table)) table.open = false;
  folded.add(table);
  const words = document.createElement("p");
  words.className = "chart-words";
  const chart = { ...read, words };
  charts.set(plot, chart);
  const canvas = document.createElement("div");
  plot.append(words, canvas);
  plot.tabIndex = 0;
  plot.onfocus = () => words.setAttribute("aria-live", "polite"); // not for updates over time
  plot.onblur = () => { words.removeAttribute("aria-live"); chart.picture.setCursor({ left: -10, top: -10 }); };
  plot.setAttribute("role", "group");
  plot.setAttribute("aria-label", `${figure.querySelector("h3").textContent}: chart. Use the left and right arrow keys to read its values.`);
  chart.picture = new uPlot(options(plot, chart, words), stacked(chart), canvas);
  tell(chart, words, null);
  resized.observe(plot);
  plot.onkeydown = (event) => move(chart, event);
}

// --- Reading the table ------------------------------------------------------

function figuresOf(figure) {
  const heads = [...figure.querySelectorAll("thead th[data-kind]")];
  const rows = [...figure.querySelectorAll("tbody tr[data-time]")].reverse(); // the table is newest first
  const marks = figure.querySelectorAll(".chart-legend > li");
  const series = heads.map((head, i) => ({
    label: head.dataset.series,
    area: head.dataset.kind === "area",
    step: "step" in head.dataset,
    dash: head.dataset.dash.split(" ").filter(Boolean).map(Number),
    mark: marks[i],
  }));
  const columns = series.map((_, i) => rows.map((row) => {
    const { value } = row.cells[i + 1].dataset;
    return value === undefined ? null : Number(value);
  }));
  const texts = series.map((_, i) => rows.map((row) => row.cells[i + 1].textContent));
  const days = "days" in figure.dataset; // of no time zone: drawn at midnight in that of the browser
  const times = rows.map((row) => Number(row.dataset.time)).map((at) => (days ? at + new Date(at * 1000).getTimezoneOffset() * 60 : at));
  const gaps = [...figure.querySelectorAll(".chart-gaps > li")].map((li) => [Number(li.dataset.from), Number(li.dataset.to)]);
  const least = Number(figure.dataset.max ?? 0);
  return {
    series, columns, texts, times, days, gaps, least, ...held(times, columns, series),
    lines: JSON.stringify(series.map(({ label, area, step, mark }) => [label, area, step, mark.className])),
    values: JSON.stringify([times, columns, gaps, least]),
  };
}

// held returns the points to draw, by row: the last value of a step series, and one
// before a gap, applies until the next would begin.
function held(times, columns, series) {
  const rows = [], at = [];
  const width = Math.min(...times.slice(1).map((t, i) => t - times[i]), day);
  times.forEach((t, i) => {
    rows.push(i);
    at.push(t);
    if (times.length > 1 && series.every((s) => s.step) && columns.some((column) => column[i] !== null && (column[i + 1] ?? null) === null)) {
      rows.push(i);
      at.push(t + width - 0.001);
    }
  });
  return { rows, at };
}

// stacked returns the data for uPlot: each area on top of those before it.
function stacked({ at, rows, columns, series }) {
  const sums = rows.map(() => 0);
  return [at, ...columns.map((column, i) => rows.map((row, t) => {
    const v = column[row];
    return v === null || !series[i].area ? v : (sums[t] += v);
  }))];
}

// --- The chart --------------------------------------------------------------

function options(plot, chart, words) {
  const style = getComputedStyle(plot);
  const text = style.color, grid = style.borderTopColor;
  const font = `11px ${style.fontFamily}`;
  const areas = chart.series.map((s, i) => (s.area ? i + 1 : 0)).filter(Boolean);
  const axis = { stroke: text, font, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, width: 1, size: 4 } };
  return {
    width: Math.max(120, Math.floor(plot.clientWidth)),
    height,
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false }, points: { size: 6 } },
    scales: {
      x: { range: (picture, min, max) => (picture.data[0].length === 1 ? [min - minute, min + minute] : [min, max]) }, // uPlot shows years for one point
      y: { range: (_, __, max) => [0, Math.max(1, (Math.max(max ?? 0, chart.least)) * 1.06)] },
    },
    axes: [
      { ...axis, size: 42, space: 72, values: (_, splits, __, ___, step) => clocks(splits, step) },
      { ...axis, size: (_, values) => 14 + 7 * Math.max(2, ...(values ?? []).map((v) => (v ?? "").length)), values: (_, splits, __, ___, step) => splits.map((v) => (v === null ? "" : short(v, step))) },
    ],
    series: [{}, ...chart.series.map((s) => {
      const colour = getComputedStyle(s.mark).color;
      return {
        label: s.label, stroke: colour, width: 1.5, dash: s.dash, points: { show: () => false, filter: lonely, size: 5, fill: colour },
        paths: s.step ? uPlot.paths.stepped({ align: 1 }) : undefined,
        fill: s.area ? faded(colour) : undefined,
      };
    })],
    // Each area ends at the top of the one below it.
    bands: areas.slice(1).map((upper, i) => ({ series: [upper, areas[i]] })),
    hooks: {
      drawClear: [(picture) => hatch(picture, chart.gaps, grid)],
      setCursor: [(picture) => tell(chart, words, chart.rows[picture.cursor.idx] ?? null)],
    },
  };
}

// lonely returns the values between two gaps, which no line shows.
function lonely(picture, i) {
  const column = picture.data[i];
  const at = column.flatMap((v, t) => (v !== null && (column[t - 1] ?? null) === null && (column[t + 1] ?? null) === null ? [t] : []));
  return at.length > 0 ? at : null;
}

function faded(colour) {
  const [r, g, b] = colour.match(/[\d.]+/g);
  return `rgb(${r} ${g} ${b} / 28%)`;
}

// hatch marks the periods without data.
function hatch(picture, gaps, colour) {
  const { ctx, bbox } = picture;
  ctx.save();
  ctx.beginPath();
  for (const [from, to] of gaps) {
    const left = Math.max(bbox.left, picture.valToPos(from, "x", true));
    const right = Math.min(bbox.left + bbox.width, picture.valToPos(to, "x", true));
    if (right > left) ctx.rect(left, bbox.top, Math.max(2, right - left), bbox.height);
  }
  ctx.clip();
  ctx.strokeStyle = colour;
  ctx.lineWidth = devicePixelRatio;
  const gap = 7 * devicePixelRatio;
  ctx.beginPath();
  for (let x = bbox.left - bbox.height; gaps.length > 0 && x < bbox.left + bbox.width; x += gap) {
    ctx.moveTo(x, bbox.top + bbox.height);
    ctx.lineTo(x + bbox.height, bbox.top);
  }
  ctx.stroke();
  ctx.restore();
}

// latest returns the last time with data.
function latest({ times, columns }) {
  return times.findLastIndex((_, t) => columns.some((column) => column[t] !== null));
}

// tell shows the values at the cursor, or the latest.
function tell(chart, words, i) {
  const at = i ?? latest(chart);
  if (at < 0) return;
  const when = new Date(chart.times[at] * 1000).toLocaleString("en-GB", { day: "numeric", month: "short", ...(chart.days ? {} : { hour: "2-digit", minute: "2-digit" }) });
  const figures = chart.series.map((s, n) => `${s.label} ${chart.columns[n][at] === null ? "no data" : chart.texts[n][at]}`);
  const line = `${when}: ${figures.join(" · ")}`;
  if (words.textContent !== line) words.textContent = line;
}

function move(chart, event) {
  const last = chart.times.length - 1, now = chart.rows[chart.picture.cursor.idx] ?? last + 1;
  const to = { ArrowLeft: now - 1, ArrowRight: now + 1, Home: 0, End: last }[event.key];
  if (to === undefined || last < 0) return;
  event.preventDefault();
  const at = Math.min(Math.max(to, 0), last);
  chart.picture.setCursor({ left: chart.picture.valToPos(chart.times[at], "x"), top: 0 });
}

// --- Labels of axes: axis_test.go runs this section ---------------------------

// clocks returns the labels of times, step seconds apart, in the time zone of the browser; at
// midnight, the day. Steps of less than a second have one label for each second.
const clocks = (times, step) => times.map((at, i) => (Math.floor(at) === Math.floor(times[i - 1]) ? "" : clock(at, step, times[i - 1])));

function clock(at, step, before) {
  const date = new Date(at * 1000);
  if (step >= 28 * day) return date.toLocaleDateString("en-GB", { month: "short", year: "numeric" });
  if (step >= day) return date.toLocaleDateString("en-GB", { day: "numeric", month: "short" });
  const time = date.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", second: step < 60 ? "2-digit" : undefined });
  const begins = before === undefined || new Date(before * 1000).toDateString() !== date.toDateString();
  return begins ? `${time}\n${date.toLocaleDateString("en-GB", { day: "numeric", month: "short" })}` : time;
}

// short returns the label of a value, with the digits that distinguish it from one a step away.
function short(v, step) {
  if (v < 10_000) return v.toLocaleString("en", { maximumFractionDigits: digits(step) });
  const unit = 1000 ** Math.floor(Math.log10(v) / 3);
  return v.toLocaleString("en", { notation: "compact", maximumFractionDigits: digits(step / unit) });
}

// digits returns how many decimals step has.
function digits(step) {
  let n = 0;
  while (n < 9 && Math.abs(step * 10 ** n - Math.round(step * 10 ** n)) > 1e-6) n++;
  return n;
}
