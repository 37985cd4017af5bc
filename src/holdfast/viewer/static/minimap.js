// The whole log at a glance, on a canvas: how many lanes, where errors, forks and heads
// are, what is in sight. A click or a drag goes there.

import { h } from "./elements.js";
import { inTheme } from "./themes.js";

// In pixels.
const EDGE = 6;
const LANE = 4;
const MARK = 6;

// `go(index)` brings a row in sight. The list beside it can do all of this with keys.
export function minimap(go) {
  const element = h("canvas", { class: "minimap", "aria-hidden": "true" });
  let drawn = { buckets: [], total: 0, selected: -1, first: 0, last: 0 };

  const paint = () => {
    const scale = devicePixelRatio;
    const [width, height] = [element.clientWidth, element.clientHeight];
    element.hidden = drawn.buckets.length === 0 || drawn.last - drawn.first >= drawn.total;
    if (width === 0 || height === 0) return;
    element.width = width * scale;
    element.height = height * scale;
    const pen = element.getContext("2d");
    pen.scale(scale, scale);
    picture(pen, drawn, { width, height, ...colours(element) });
  };

  const goTo = (event) => {
    const { top, height } = element.getBoundingClientRect();
    const part = Math.min(1, Math.max(0, (event.clientY - top) / height));
    go(Math.min(drawn.total - 1, Math.floor(part * drawn.total)));
  };
  element.addEventListener("pointerdown", (event) => {
    element.setPointerCapture(event.pointerId);
    goTo(event);
  });
  element.addEventListener("pointermove", (event) => {
    if (element.hasPointerCapture(event.pointerId)) goTo(event);
  });
  new ResizeObserver(paint).observe(element);
  inTheme(paint);

  return {
    element,
    draw(log, selected) {
      drawn = { ...drawn, buckets: log.buckets, total: log.total, selected };
      paint();
    },
    show(first, last) {
      drawn = { ...drawn, first, last };
      paint();
    },
  };
}

// Canvas knows no CSS variables; these properties carry the colours of the theme.
function colours(element) {
  const style = getComputedStyle(element);
  return {
    plain: style.color,
    bad: style.borderTopColor,
    accent: style.borderBottomColor,
    sight: style.caretColor,
  };
}

// A spine that is wider where more lanes run side by side.
function picture(pen, { buckets, total, selected, first, last }, look) {
  const y = (index) => (index / total) * look.height;
  const widest = look.width - 2 * EDGE - MARK;
  pen.fillStyle = look.sight;
  pen.fillRect(0, y(first), look.width, Math.max(6, y(last) - y(first)));
  let index = total - buckets.reduce((sum, bucket) => sum + bucket.count, 0);
  for (const bucket of buckets) {
    const height = y(index + bucket.count) - y(index);
    const mark = (colour, x, wide) => {
      pen.fillStyle = colour;
      pen.fillRect(x, y(index), wide, Math.max(2, Math.min(4, height)));
    };
    pen.fillStyle = look.plain;
    pen.fillRect(EDGE, y(index), Math.min(widest, LANE * bucket.lanes), Math.max(1, height + 0.5));
    if (bucket.heads) mark(look.accent, EDGE, widest);
    if (bucket.errors) mark(look.bad, look.width - EDGE - MARK, MARK);
    index += bucket.count;
  }
  if (selected < 0) return;
  pen.fillStyle = look.accent;
  pen.fillRect(0, y(selected), look.width, 2);
}
