// The whole log at a glance, on a canvas: how many lanes, where errors, forks and heads
// are, what is in sight. A click or a drag goes there.

import { h } from "./elements.js";
import { inTheme } from "./themes.js";

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
    sight: style.backgroundColor,
  };
}

function picture(pen, { buckets, total, selected, first, last }, look) {
  const y = (index) => (index / total) * look.height;
  const most = Math.max(1, ...buckets.map((bucket) => bucket.lanes));
  pen.fillStyle = look.sight;
  pen.fillRect(0, y(first), look.width, Math.max(6, y(last) - y(first)));
  let index = total - buckets.reduce((sum, bucket) => sum + bucket.count, 0);
  for (const bucket of buckets) {
    const height = Math.max(1, y(bucket.count) - (y(bucket.count) > 3 ? 1 : 0));
    pen.fillStyle = bucket.heads ? look.accent : look.plain;
    pen.fillRect(4, y(index), 4 + (bucket.lanes / most) * (look.width - 20), height);
    if (bucket.errors) {
      pen.fillStyle = look.bad;
      pen.fillRect(look.width - 9, y(index), 5, Math.max(2, height));
    }
    index += bucket.count;
  }
  if (selected < 0) return;
  pen.fillStyle = look.accent;
  pen.fillRect(0, y(selected), look.width, 2);
}
