// The tokens of each step of a line, as bars behind the scrubber; errors stand out.

import { h } from "./elements.js";
import { inTheme } from "./themes.js";

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

// Several steps may share a pixel: the largest of them is drawn.
function bars(pen, line, at, { width, height, style }) {
  const columns = Math.max(1, Math.min(line.length, Math.floor(width / 2)));
  const most = Math.max(1, ...values(line, columns).map((one) => one.tokens));
  const each = width / columns;
  values(line, columns).forEach(({ tokens, error, last }, column) => {
    const tall = tokens ? Math.max(2, (tokens / most) * (height - 2)) : 1;
    pen.fillStyle = last <= at ? style.borderBottomColor : style.color;
    if (error) pen.fillStyle = style.borderTopColor;
    const wide = each > 4 ? each - 1 : each;
    pen.fillRect(column * each, height - (error ? Math.max(tall, 6) : tall), wide, height);
  });
}

function values(line, columns) {
  const result = Array.from({ length: columns }, () => ({ tokens: 0, error: false, last: 0 }));
  line.items.forEach((item, position) => {
    const column = result[Math.min(columns - 1, Math.floor((position * columns) / line.length))];
    column.tokens = Math.max(column.tokens, item.tokens ?? 0);
    column.error ||= Boolean(item.error);
    column.last = position;
  });
  return result;
}
