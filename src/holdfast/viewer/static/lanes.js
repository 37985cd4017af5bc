// The lanes of one row of the graph, as a picture.

import { svg } from "./elements.js";

const WIDTH = 14;
const EDGE = 5;
const MOST = 6; // lanes beyond are drawn as one

export function lanesWidth(rows) {
  const most = Math.max(1, ...rows.map((row) => (row ? row.lanes.length : 1)));
  return Math.min(most, MOST + 1) * WIDTH + 2 * EDGE;
}

// `line` is the lane in which the open thread's line comes down from above.
export function lanesPicture({ row, line, width, height, mark }) {
  const middle = height / 2;
  const at = x(row.lane);
  const paths = [];
  const draw = (isLine, d) =>
    paths.push(svg("path", { class: isLine ? "lane on-line" : "lane", d }));
  row.lanes.forEach((used, lane) => {
    const passes = used && lane !== row.lane && lane <= MOST;
    if (passes) draw(lane === line, `M${x(lane)} 0V${height}`);
  });
  if (!row.tip) draw(line === row.lane, `M${at} 0V${middle}`);
  for (const lane of row.ending) draw(lane === line, curve(x(lane), at, middle));
  if (row.parent !== null) draw(row.on_line, `M${at} ${middle}V${height}`);
  return svg(
    "svg",
    { class: "lanes", width, height, "aria-hidden": "true" },
    paths,
    mark(at, middle),
  );
}

function x(lane) {
  return Math.min(lane, MOST) * WIDTH + WIDTH / 2 + EDGE;
}

function curve(from, to, y) {
  return `M${from} 0C${from} ${y} ${from} ${y} ${to} ${y}`;
}
