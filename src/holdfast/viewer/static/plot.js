// Draws series on a canvas, in the colours of the page.

const MARGIN = { left: 56, right: 8, top: 8, bottom: 20 };
const LINES = 4;

// `series`: `[{ values, colour }]`, each colour the name of a CSS variable. `stacked`
// puts each series on top of the one before it. `label` makes the text of a value.
export function plot(
  canvas,
  { series, stacked = false, bars = false, label, first, last },
) {
  const pen = prepared(canvas);
  const room = { width: canvas.clientWidth, height: canvas.clientHeight };
  const layers = stacked
    ? piled(series)
    : series.map((one) => ({ ...one, floor: null }));
  const top = roundedUp(
    Math.max(1e-9, ...layers.flatMap(({ values }) => values.map((v) => v ?? 0))),
  );
  const length = layers[0]?.values.length ?? 0;
  const scale = scaleOf(room, length, top, bars);
  const draw = bars ? drawBars : stacked ? drawArea : drawLine;
  drawGrid(pen, canvas, scale, { top, label, first, last });
  for (const layer of layers.toReversed()) draw(pen, canvas, scale, layer);
  return scale;
}

// The next number that divides well into the lines of the grid.
function roundedUp(number) {
  const unit = 10 ** Math.floor(Math.log10(number));
  return [1, 2, 4, 6, 8, 10].find((times) => times * unit >= number) * unit;
}

function prepared(canvas) {
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(canvas.clientWidth * ratio);
  canvas.height = Math.round(canvas.clientHeight * ratio);
  const pen = canvas.getContext("2d");
  pen.scale(ratio, ratio);
  return pen;
}

function piled(series) {
  let floor = series[0]?.values.map(() => 0) ?? [];
  return series.map((one) => {
    const values = one.values.map((value, at) => floor[at] + (value ?? 0));
    const layer = { ...one, values, floor };
    floor = values;
    return layer;
  });
}

// Points reach from edge to edge; bars stand in the middle of their share of the width.
function scaleOf({ width, height }, length, top, bars) {
  const inner = width - MARGIN.left - MARGIN.right;
  const tall = height - MARGIN.top - MARGIN.bottom;
  const step = inner / Math.max(bars ? length : length - 1, 1);
  const start = MARGIN.left + (bars ? step / 2 : 0);
  return {
    width,
    height,
    step,
    x: (at) => start + at * step,
    y: (value) => MARGIN.top + tall * (1 - value / top),
    at: (x) => Math.min(length - 1, Math.max(0, Math.round((x - start) / step))),
  };
}

// A variable of the page as a colour. A property resolves `light-dark()`, reading the
// variable does not.
function colour(element, name) {
  element.style.setProperty("outline-color", `var(${name})`);
  return getComputedStyle(element).outlineColor;
}

function drawGrid(pen, canvas, scale, { top, label, first, last }) {
  const style = getComputedStyle(canvas);
  pen.font = `11px ${style.fontFamily}`;
  pen.fillStyle = style.color;
  pen.strokeStyle = colour(canvas, "--rule");
  pen.textAlign = "right";
  pen.textBaseline = "middle";
  for (let line = 0; line <= LINES; line += 1) {
    const value = (top * line) / LINES;
    const y = Math.round(scale.y(value)) + 0.5;
    stroke(pen, [
      [MARGIN.left, y],
      [scale.width - MARGIN.right, y],
    ]);
    if (line % 2 === 0) pen.fillText(label(value), MARGIN.left - 6, y);
  }
  pen.textBaseline = "bottom";
  pen.fillText(last, scale.width - MARGIN.right, scale.height - 2);
  pen.textAlign = "left";
  pen.fillText(first, MARGIN.left, scale.height - 2);
}

function drawBars(pen, canvas, scale, { values, colour: name }) {
  pen.fillStyle = colour(canvas, name);
  const width = Math.max(1, Math.min(24, scale.step * 0.7));
  values.forEach((value, at) => {
    const y = scale.y(value ?? 0);
    pen.fillRect(scale.x(at) - width / 2, y, width, scale.y(0) - y);
  });
}

function drawArea(pen, canvas, scale, { values, floor, colour: name }) {
  const points = values.map((value, at) => [scale.x(at), scale.y(value)]);
  const below = floor.map((value, at) => [scale.x(at), scale.y(value)]);
  pen.fillStyle = colour(canvas, name);
  pen.beginPath();
  [...points, ...below.toReversed()].forEach(([x, y]) => pen.lineTo(x, y));
  pen.fill();
}

function drawLine(pen, canvas, scale, { values, colour: name, dash = [] }) {
  const points = values.map((value, at) => [scale.x(at), scale.y(value ?? 0)]);
  pen.strokeStyle = colour(canvas, name);
  pen.lineWidth = 1.5;
  pen.setLineDash(dash);
  stroke(pen, points);
  pen.setLineDash([]);
  pen.lineWidth = 1;
}

function stroke(pen, points) {
  pen.beginPath();
  points.forEach(([x, y]) => pen.lineTo(x, y));
  pen.stroke();
}
