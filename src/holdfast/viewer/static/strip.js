// The tokens of each step of a line as bars behind the scrubber, and its cost as a mark
// across them; errors stand out.

import { h } from "./elements.js";
import { inTheme } from "./themes.js";

const THUMB = 16; // pixels
const WIDEST = 8;
const MARK = 2; // how thick the mark of a cost is

export function strip() {
  const element = h("canvas", { class: "strip", "aria-hidden": "true" });
  let shown = null;
  let at = 0;

  const paint = () => {
    const [width, height] = [element.clientWidth, element.clientHeight];
    if (shown === null || width === 0) return;
    element.width = width * devicePixelRatio;
    element.height = height * devicePixelRatio;
    const pen = element.getContext("2d");
    pen.scale(devicePixelRatio, devicePixelRatio);
    bars(pen, shown, at, { width, height, style: getComputedStyle(element) });
  };
  new ResizeObserver(paint).observe(element);
  inTheme(paint);

  return {
    element,
    show(line, position) {
      shown = line;
      at = position;
      paint();
    },
  };
}

// A bar stands over the place of the slider's thumb. Several steps may share one: then
// the largest is drawn.
function bars(pen, line, at, { width, height, style }) {
  const columns = Math.max(1, Math.min(line.length, Math.floor(width / 2)));
  const shown = values(line, columns);
  const most = Math.max(1, ...shown.map((one) => one.tokens));
  const dearest = Math.max(...shown.map((one) => one.cost));
  const apart = columns > 1 ? (width - THUMB) / (columns - 1) : 0;
  const wide = Math.max(1, Math.min(WIDEST, apart - 1));
  shown.forEach(({ tokens, cost, error, last }, column) => {
    const tall = tokens ? Math.max(2, (tokens / most) * height) : 1;
    pen.fillStyle = last <= at ? style.borderBottomColor : style.color;
    if (error) pen.fillStyle = style.borderTopColor;
    const x = THUMB / 2 + column * apart - wide / 2;
    pen.fillRect(x, height - (error ? Math.max(tall, 6) : tall), wide, height);
    if (cost === 0) return;
    pen.fillStyle = style.borderLeftColor;
    pen.fillRect(x - 1, (height - MARK) * (1 - cost / dearest), wide + 2, MARK);
  });
}

function values(line, columns) {
  const result = Array.from({ length: columns }, () => ({
    tokens: 0,
    cost: 0,
    error: false,
    last: 0,
  }));
  line.items.forEach((item, position) => {
    const column = result[Math.min(columns - 1, Math.floor((position * columns) / line.length))];
    column.tokens = Math.max(column.tokens, item.tokens ?? 0);
    column.cost = Math.max(column.cost, item.cost ?? 0);
    column.error ||= Boolean(item.error);
    column.last = position;
  });
  return result;
}
