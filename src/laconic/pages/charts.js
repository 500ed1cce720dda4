"use strict";
// Draws a view of a figure as SVG, as wide as its place. Every drawing returns {svg, hits, legend}; a hit is a place
// {x, y, group, say} that answers to pointer and keys with the lines of say().
// Views, by kind:
//   lines  {x, y: axis, each, series: [{label, colour, has_band, is_limit, points: [[round, x, y, low, high]]}]}; each: what
//          the first number of a point is, if no round
//   strip  {x: axis, rows: [{label, colour, dots: [[client, value, n_correct, n_test, seed]]}]}; of many clients, in place
//          of dots, {bins: [[from, to, n]], median, p10}
//   scatter {x, y: axis, series: [{label, colour, dots: [[client, x, y, seed]]}]}; both axes are alike
//   bars   {has_steps, rows: [{label, segments: [{label, colour, value}]}]}
//   heat   {across: clients, down: names, values: [across][down], are_counts}; counts: of classes, else of two clients
//          or of two things with the names kinds: [across, down]; of unlike ones 0 is blank
// An axis is {label, unit, log, zero}; log: logarithmic, zero: begins at 0 unless it is. A client is its number or name; a
// seed is there where there are several.
const root = document.documentElement;
window.addEventListener("error", (event) => { root.dataset.error = event.message; });

const N_COLOURS = 8;
const colourOf = (k) => (k < 0 ? "var(--grey)" : `var(--c${k % N_COLOURS})`);
const namespace = document.getElementById("blank").namespaceURI;

function shape(name, attributes, text) {
  const element = document.createElementNS(namespace, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

function canvas(width, height) {
  return shape("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", tabindex: 0 });
}

// The twin of format_bytes in tables.py.
function formatBytes(bytes) {
  let value = Number(bytes.toPrecision(3)), power = 0;
  if (value < 1000 && Number.isInteger(bytes)) return `${bytes} B`;
  while (value >= 1000 && power < 5) { value /= 1000; power += 1; }
  const digits = Math.max(0, 3 - String(Math.trunc(value)).length);
  return `${value.toFixed(digits)} ${["B", "kB", "MB", "GB", "TB", "PB"][power]}`;
}

// The twin of format_duration in tables.py; least: from how many of a unit on it is used.
function formatDuration(seconds, least = 2) {
  const units = [["years", 365.25 * 86400], ["days", 86400], ["h", 3600], ["min", 60], ["s", 1], ["ms", 1e-3]];
  let [unit, length] = units.find(([, long]) => seconds >= least * long * 0.9999) ?? units.at(-1);
  if (unit === "ms" && seconds >= 1) [unit, length] = ["s", 1];
  const value = seconds / length;
  return `${value < 1000 ? Number(value.toPrecision(3)) : value.toFixed(0)} ${unit}`;
}

const plain = (value) => String(Number(value.toPrecision(4)));
const format = {
  bytes: formatBytes,
  percent: (value) => `${(100 * value).toFixed(1)} %`,
  gain: (value) => `${value < 0 ? "−" : "+"}${Math.abs(100 * value).toFixed(1)} points`,
  seconds: (value) => `${plain(value)} s`,
  duration: (value) => formatDuration(value),
  count: plain,
  number: plain,
};
const tickFormat = {
  ...format,
  bytes: (value) => formatBytes(value).replace(/\.0+ /, " ").replace(/(\.\d)0 /, "$1 "),
  duration: (value) => formatDuration(value, 1).replace(/^1 (day|year)s/, "1 $1"),
  percent: (value) => `${Number((100 * value).toFixed(2))} %`,
  gain: (value) => `${value > 0 ? "+" : ""}${Number((100 * value).toFixed(1))}`.replace("-", "−"),
};

function linearTicks(low, high, most) {
  const rough = (high - low) / most, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough * 0.999);
  const ticks = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k += 1) ticks.push(Number((k * step).toPrecision(12)));
  return ticks;
}

function logTicks(low, high, most) {
  const all = (digits, skip) => {
    const ticks = [];
    for (let k = Math.floor(Math.log10(low)); k <= Math.ceil(Math.log10(high)); k += skip)
      for (const digit of digits) ticks.push(digit * 10 ** k);
    return ticks.filter((tick) => tick >= low * 0.999 && tick <= high * 1.001);
  };
  const choices = [all([1, 2, 5], 1), all([1], 1), all([1], 2), all([1], 3)];
  const ticks = choices.find((some) => some.length <= most) ?? choices.at(-1);
  return ticks.length > 1 ? ticks : linearTicks(low, high, Math.max(3, most / 2));
}

// What clocks and calendars have, as far as it lies between.
function durationTicks(low, high, most) {
  const lengths = [[1e-3, [1, 5, 20, 100, 500]], [1, [1, 5, 20]], [60, [1, 5, 20]], [3600, [1, 4]], [86400, [1, 4, 20, 100]], [365.25 * 86400, [1, 5, 20, 100, 1000]]];
  const ticks = lengths.flatMap(([unit, some]) => some.map((n) => n * unit)).filter((tick) => tick >= low * 0.999 && tick <= high * 1.001);
  return ticks.length > 1 ? ticks.filter((_, k) => k % Math.ceil(ticks.length / most) === 0) : [low * 1.15, high / 1.15];
}

// low and high come back widened to a little more than the values; from and to are pixels.
function makeScale(axis, values, from, to, most) {
  let low = values.reduce((a, b) => Math.min(a, b)), high = values.reduce((a, b) => Math.max(a, b));
  if (axis.log) {
    [low, high] = low === high ? [low / 2, high * 2] : [low / 1.15, high * 1.15];
  } else {
    const isCount = axis.unit === "count", isPositive = low >= 0;
    const room = (high - low) * 0.06 || (isCount ? 0.5 : Math.abs(high) * 0.1 || 0.5);
    [low, high] = isCount && high > low ? [low, high] : [low - room, high + room];
    if (isPositive && !isCount) low = Math.max(0, low);
    if (axis.unit === "percent") [low, high] = [Math.max(0, low), Math.min(1, high)];
    if (axis.zero) low = 0;
  }
  const bend = axis.log ? Math.log10 : (value) => value;
  const place = (value) => from + ((bend(value) - bend(low)) / (bend(high) - bend(low))) * (to - from);
  let ticks = (axis.unit === "duration" ? durationTicks : axis.log ? logTicks : linearTicks)(low, high, most);
  if (axis.unit === "count") ticks = ticks.filter(Number.isInteger);
  return { place, ticks };
}

// Marks differ in form too, so that lines can be told apart without colour, and those of one colour from each other.
function mark(k, x, y, size, attributes = {}) {
  const forms = [
    (r) => `M${x - r},${y}a${r},${r} 0 1,0 ${2 * r},0a${r},${r} 0 1,0 ${-2 * r},0z`,
    (r) => `M${x - r},${y - r}h${2 * r}v${2 * r}h${-2 * r}z`,
    (r) => `M${x},${y - 1.3 * r}l${1.25 * r},${2.2 * r}h${-2.5 * r}z`,
    (r) => `M${x},${y - 1.35 * r}l${1.35 * r},${1.35 * r}l${-1.35 * r},${1.35 * r}l${-1.35 * r},${-1.35 * r}z`,
  ];
  const form = forms[k < 0 ? 1 : (k + Math.floor(k / N_COLOURS)) % forms.length];
  return shape("path", { d: form(size), fill: colourOf(k), ...attributes });
}

// A filled piece of a bar; beyond the last colour they come again, with stripes.
function swatch(k, x, y, width, height) {
  const pieces = [shape("rect", { x, y, width, height, fill: colourOf(k), class: "bar" })];
  const turn = k < 0 ? 0 : Math.floor(k / N_COLOURS), path = [];
  if (turn % 2) for (let at = 3; at < width; at += 5) path.push(`M${(x + at).toFixed(1)},${y}v${height}`);
  else if (turn) for (let at = 3; at < height; at += 5) path.push(`M${x.toFixed(1)},${y + at}h${width.toFixed(1)}`);
  if (path.length) pieces.push(shape("path", { d: path.join(""), class: "stripes" }));
  return pieces;
}

const pen = document.createElement("canvas").getContext("2d");
function textWidth(text) {  // at the size of ticks
  pen.font = `12.5px ${getComputedStyle(document.body).fontFamily}`;
  return pen.measureText(text).width + 1;
}

function drawAxes(svg, { left, right, top, bottom }, x, y, view) {
  for (const tick of y.ticks) {
    const at = y.place(tick);
    svg.append(shape("line", { x1: left, x2: right, y1: at, y2: at, class: "grid" }));
    svg.append(shape("text", { x: left - 8, y: at + 4, class: "tick end" }, tickFormat[view.y.unit](tick)));
  }
  drawBase(svg, { left, right, bottom }, x, view.x);
  svg.append(shape("text", { x: 0, y: top - 12, class: "label" }, view.y.label));
}

function drawBase(svg, { left, right, bottom }, x, axis) {
  svg.append(shape("line", { x1: left, x2: right, y1: bottom, y2: bottom, class: "base" }));
  for (const tick of x.ticks) {
    const at = x.place(tick);
    svg.append(shape("line", { x1: at, x2: at, y1: bottom, y2: bottom + 5, class: "base" }));
    const text = tickFormat[axis.unit](tick), half = textWidth(text) / 2;  // none is cut off at the edge
    const middle = Math.max(half, Math.min(at, Number(svg.getAttribute("width")) - half));
    svg.append(shape("text", { x: middle, y: bottom + 19, class: "tick middle" }, text));
  }
  svg.append(shape("text", { x: right, y: bottom + 38, class: "label end" }, axis.label));
}

function drawLines(view, width, isSmall) {
  const height = isSmall ? 190 : Math.min(430, Math.max(280, width * 0.45));
  const frame = { left: 0, right: width - 14, top: isSmall ? 14 : 30, bottom: height - (isSmall ? 44 : 46) };
  const svg = canvas(width, height), hits = [], legend = [];
  const visible = (point) => (!view.x.log || point[1] > 0) && (!view.y.log || point[2] > 0);
  // a seed that has nothing has no place on a logarithmic axis: there the band begins at the mean
  const lift = (p) => (view.y.log && p[3] <= 0 ? [p[0], p[1], p[2], p[2], p[4]] : p);
  const series = view.series.map((one) => ({ ...one, shown: one.points.filter(visible).map(lift) }));
  const drawn = series.filter((one) => one.shown.length > 0);
  // Whoever sends nothing has no place on a logarithmic axis: a level line shows what it reaches for free.
  const silent = view.x.log ? series.filter((one) => one.points.length > 0 && one.shown.length === 0) : [];
  const levels = silent.map((one) => one.points.at(-1));
  const heights = drawn.flatMap((one) => one.shown.flatMap((p) => [p[3], p[4]])).concat(levels.map((p) => p[2]));
  if (heights.length === 0) return drawNothing(width);
  const widths = drawn.flatMap((one) => one.shown.map((p) => p[1]));
  const y = makeScale(view.y, heights, frame.bottom, frame.top, isSmall ? 4 : 6);
  frame.left = 14 + Math.max(isSmall ? 20 : 40, ...y.ticks.map((tick) => textWidth(tickFormat[view.y.unit](tick))));
  const x = makeScale(view.x, widths.length ? widths : [1000, 1e6], frame.left, frame.right, width / 80);
  drawAxes(svg, frame, x, y, view);
  silent.forEach((one, k) => {
    const at = y.place(levels[k][2]);
    svg.append(shape("line", { x1: frame.left, x2: frame.right, y1: at, y2: at, class: "level", stroke: colourOf(one.colour) }));
    hits.push({ x: frame.right, y: at, group: one.colour, say: () => [one.label, "sends nothing", format[view.y.unit](levels[k][2])] });
    legend.push({ colour: one.colour, label: `${one.label} (sends nothing)` });
  });
  for (const one of drawn) {
    const at = one.shown.map((p) => [x.place(p[1]), y.place(p[2])]);
    const join = (points) => points.map((p) => p.map((n) => n.toFixed(1)).join(",")).join("L");
    if (one.has_band) {
      const edge = (k) => one.shown.map((p) => [x.place(p[1]), y.place(p[k])]);
      svg.append(shape("path", { d: `M${join(edge(4))}L${join(edge(3).reverse())}z`, fill: colourOf(one.colour), class: "band" }));
    }
    svg.append(shape("path", { d: `M${join(at)}`, stroke: colourOf(one.colour), class: one.is_limit || one.colour >= N_COLOURS ? "line dashed" : "line" }));
    at.forEach(([px, py], k) => {
      const p = one.shown[k];
      if (one.is_limit) { /* a level needs no marks */ } else if (k === at.length - 1 || (at.length <= 40 && !isSmall)) svg.append(mark(one.colour, px, py, k === at.length - 1 ? 5 : 3, { class: "mark" }));
      const range = one.has_band ? [`seeds ${format[view.y.unit](p[3])} to ${format[view.y.unit](p[4])}`] : [];
      const cost = view.x.unit === "count" || view.each ? [] : [format[view.x.unit](p[1])];
      hits.push({ x: px, y: py, group: one.colour, say: () => [one.label, `${view.each ?? "round"} ${p[0]}`, format[view.y.unit](p[2]), ...range, ...cost] });
    });
    legend.push({ colour: one.colour, label: one.label });
  }
  return { svg, hits, legend: series.length > 1 || silent.length ? legend.sort((a, b) => a.colour - b.colour) : [] };
}

function drawNothing(width, why = "nothing recorded yet") {
  const svg = canvas(width, 60);
  svg.append(shape("text", { x: 0, y: 34, class: "label" }, why));
  return { svg, hits: [], legend: [] };
}

const quantile = (sorted, share) => {
  const at = (sorted.length - 1) * share, below = Math.floor(at);
  return sorted[below] + (at - below) * (sorted[Math.min(below + 1, sorted.length - 1)] - sorted[below]);
};

const nameClient = (client, seed) => `client ${client}${seed === undefined ? "" : `, seed ${seed}`}`;

// How many clients lie in each bin, as heights about the middle.
function drawBins(svg, hits, row, group, { x, middle, room, unit }) {
  const most = Math.max(...row.bins.map((bin) => bin[2]));
  for (const [from, to, n] of row.bins) {
    const left = x.place(from), wide = Math.max(1, x.place(to) - left - 1), tall = Math.max(2, (room * n) / most);
    svg.append(shape("rect", { x: left, y: middle - tall / 2, width: wide, height: tall, fill: colourOf(row.colour), class: "dot" }));
    const say = () => [row.label, `${n} ${n === 1 ? "client" : "clients"}`, `${format[unit](from)} to ${format[unit](to)}`];
    hits.push({ x: left + wide / 2, y: middle, group, say });
  }
}

function drawStrip(view, width) {
  const values = view.rows.flatMap((row) => (row.bins ?? row.dots).flatMap((one) => (row.bins ? one.slice(0, 2) : one[1])));
  if (values.length === 0) return drawNothing(width);
  const radius = values.length / view.rows.length > 250 || width < 500 ? 2.5 : 3.5, left = 8, right = width - 26;
  const axis = view.x.unit === "gain" ? [...values, 0] : [...values, 1];
  const x = makeScale(view.x, axis, left, right, width / 80), svg = canvas(width, 10), hits = [];
  let top = 6;
  view.rows.forEach((row, group) => {
    const dots = [...(row.dots ?? [])].sort((a, b) => a[1] - b[1]);
    const columns = new Map(), step = 2 * radius + 0.5;  // dots that would touch pile up about the middle
    const columnOf = (dot) => Math.round(x.place(dot[1]) / step);
    const piled = dots.map((dot) => {
      const n = columns.get(columnOf(dot)) ?? 0;
      columns.set(columnOf(dot), n + 1);
      return n;
    });
    const room = row.bins ? 80 : Math.min(110, Math.max(34, (Math.max(0, ...piled) + 2) * step)), middle = top + 34 + room / 2;
    svg.append(shape("text", { x: left, y: top + 14, class: "name" }, row.label));
    svg.append(shape("line", { x1: left, x2: right, y1: middle, y2: middle, class: "grid" }));
    if (row.bins) drawBins(svg, hits, row, group, { x, middle, room, unit: view.x.unit });
    dots.forEach((dot, k) => {
      const px = x.place(dot[1]), side = piled[k] % 2 ? 1 : -1;
      const between = Math.min(step, (room - step) / columns.get(columnOf(dot)));
      const py = middle + side * Math.ceil(piled[k] / 2) * between;
      svg.append(mark(row.colour, px, py, radius, { class: "dot" }));
      const say = () => [row.label, nameClient(dot[0], dot[4]), format[view.x.unit](dot[1]), `${dot[2]} of ${dot[3]} right`];
      hits.push({ x: px, y: py, group, say });
    });
    const sorted = dots.map((dot) => dot[1]);
    const places = row.bins ? row : { median: quantile(sorted, 0.5), p10: quantile(sorted, 0.1) };
    for (const [name, reach] of row.bins || sorted.length ? [["median", room / 2], ["p10", room / 3]] : []) {
      const at = x.place(places[name]);
      svg.append(shape("line", { x1: at, x2: at, y1: middle - reach, y2: middle + reach, class: name }));
      svg.append(shape("text", { x: at, y: middle - reach - 3, class: "tick middle" }, name));
    }
    top = middle + room / 2 + 14;
  });
  if (view.x.unit === "gain") svg.prepend(shape("line", { x1: x.place(0), x2: x.place(0), y1: 0, y2: top, class: "base" }));
  drawBase(svg, { left, right, bottom: top }, x, view.x);
  resize(svg, width, top + 46);
  return { svg, hits, legend: [] };
}

function drawScatter(view, width) {
  const size = Math.min(460, width - 76), frame = { left: 58, right: 58 + size, top: 30, bottom: 30 + size };
  const values = view.series.flatMap((one) => one.dots.flatMap((dot) => dot.slice(1, 3)));
  if (values.length === 0) return drawNothing(width);
  const x = makeScale(view.x, values, frame.left, frame.right, size / 80), y = makeScale(view.y, values, frame.bottom, frame.top, 6);
  const svg = canvas(width, frame.bottom + 46), hits = [], ends = [Math.min(...values), Math.max(...values)];
  drawAxes(svg, frame, x, y, view);
  svg.append(shape("line", { x1: x.place(ends[0]), x2: x.place(ends[1]), y1: y.place(ends[0]), y2: y.place(ends[1]), class: "base" }));
  view.series.forEach((one, group) => {
    for (const [client, across, up, seed] of one.dots) {
      const px = x.place(across), py = y.place(up);
      svg.append(mark(one.colour, px, py, 3.5, { class: "dot" }));
      const lines = [nameClient(client, seed), `${view.x.label}: ${format[view.x.unit](across)}`, `${view.y.label}: ${format[view.y.unit](up)}`];
      hits.push({ x: px, y: py, group, say: () => [...lines, format.gain(up - across)] });
    }
  });
  return { svg, hits, legend: view.series };
}

function resize(svg, width, height) {
  svg.setAttribute("height", height);
  svg.setAttribute("width", width);
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
}

function drawBars(view, width) {
  const totals = view.rows.map((row) => row.segments.reduce((sum, part) => sum + part.value, 0));
  const most = Math.max(0, ...totals), svg = canvas(width, 10), hits = [], legend = new Map();
  if (most === 0) return drawNothing(width, "nothing was sent");
  const thick = 18, space = 52;
  view.rows.forEach((row, group) => {
    const top = group * space;
    const ratio = view.has_steps && group > 0 && totals[0] > 0 ? ` · ${((100 * totals[group]) / totals[0]).toPrecision(3)} % of the paper’s` : "";
    svg.append(shape("text", { x: 0, y: top + 15, class: "name" }, row.label));
    svg.append(shape("text", { x: width - 1, y: top + 15, class: "value end" }, formatBytes(totals[group]) + ratio));
    let from = 0;
    for (const part of row.segments.filter((one) => one.value > 0)) {
      const wide = (part.value / most) * (width - 1);
      svg.append(...swatch(part.colour, from, top + 22, Math.max(wide, 2.5), thick));
      const share = `${((100 * part.value) / totals[group]).toPrecision(3)} % of ${row.label}`;
      hits.push({ x: from + wide / 2, y: top + 22 + thick / 2, group, say: () => [part.label, formatBytes(part.value), share] });
      legend.set(part.label, { colour: part.colour, label: part.label, isBar: true });
      from += wide;
    }
    const before = view.has_steps && group > 0 ? (totals[group - 1] / most) * (width - 1) : 0;
    if (before > from + 2) svg.append(shape("rect", { x: from + 1, y: top + 22.5, width: before - from - 1, height: thick - 1, class: "saved" }));
  });
  resize(svg, width, view.rows.length * space);
  return { svg, hits, legend: [...legend.values()].sort((a, b) => (a.colour < 0) - (b.colour < 0) || a.colour - b.colour) };
}

function drawHeat(view, width) {
  const n = view.across.length, m = view.down.length, levels = 8, left = 12 + 7.5 * Math.min(14, Math.max(...view.down.map((c) => c.length)));
  const fit = Math.max(2, (width - left - 2) / n), square = Math.min(40, fit, Math.max(4, 520 / n));
  const kinds = view.kinds ?? ["client", "client"], is_long = view.are_counts || kinds[0] !== kinds[1];
  const [wide, tall] = is_long ? [Math.min(56, fit), Math.min(24, Math.max(5, 340 / m))] : [square, square];
  const known = view.values.flat().filter((value) => value !== null), cells = Array.from({ length: levels }, () => []), hits = [];
  const sizes = is_long ? known.map(Math.abs) : known, least = is_long ? 0 : sizes.reduce((a, b) => Math.min(a, b), Infinity), most = sizes.reduce((a, b) => Math.max(a, b), view.are_counts ? 1 : -Infinity);
  const gap = wide > 5 && tall > 5 ? 1 : 0, svg = canvas(Math.max(width, left + n * wide + 2), m * tall + 60);
  // The root keeps small counts visible beside large ones; one path for each shade keeps the page light.
  const shadeOf = (value) => (view.are_counts ? Math.sqrt(value / most) : ((is_long ? Math.abs(value) : value) - least) / (most - least || 1));
  const say = (i, j, value, row) => view.are_counts
    ? [`client ${view.across[i]}, class ${view.down[j]}`, `${value} of ${row.reduce((a, b) => a + b, 0)} examples`]
    : [`${kinds[0]} ${view.across[i]}, ${kinds[1]} ${view.down[j]}`, plain(value)];
  view.values.forEach((row, i) => row.forEach((value, j) => {
    if (value === null) return;
    const x = left + i * wide, y = j * tall, level = Math.ceil(levels * shadeOf(value)) - 1;
    if (level >= 0) cells[level].push(`M${x.toFixed(1)},${y.toFixed(1)}h${(wide - gap).toFixed(1)}v${(tall - gap).toFixed(1)}h${(gap - wide).toFixed(1)}z`);
    hits.push({ x: x + wide / 2, y: y + tall / 2, group: j, say: () => say(i, j, value, row) });
  }));
  svg.append(shape("rect", { x: left, y: 0, width: n * wide - gap, height: m * tall - gap, class: "empty" }));
  cells.forEach((path, k) => path.length && svg.append(shape("path", { d: path.join(""), class: "heat", "fill-opacity": (k + 1) / levels })));
  const skip = Math.ceil(12 / tall);
  view.down.forEach((name, j) => j % skip === 0 && svg.append(shape("text", { x: left - 6, y: (j + 0.5) * tall + 4, class: "tick end" }, name.length > 14 ? `${name.slice(0, 13)}…` : name)));
  const every = [1, 2, 5, 10, 20, 50, 100, 200, 500].find((step) => step * wide >= 26) ?? 1000;
  view.across.forEach((client, i) => i % every === 0 && svg.append(shape("text", { x: left + (i + 0.5) * wide, y: m * tall + 15, class: "tick middle" }, client)));
  const what = view.are_counts ? "client (across) and class (down)" : `${kinds[0]} (across) and ${kinds[1]} (down)`;
  const scale = view.are_counts ? `strongest: ${most} examples` : `faintest: ${plain(least)}, strongest: ${plain(most)}`;
  const words = textWidth(`${what}; ${scale}`) < width ? [`${what}; ${scale}`] : [what, scale];
  words.forEach((line, k) => svg.append(shape("text", { x: 0, y: m * tall + 38 + 16 * k, class: "label" }, line)));
  return { svg, hits, legend: [] };
}

const draw = { lines: drawLines, strip: drawStrip, scatter: drawScatter, bars: drawBars, heat: drawHeat };
