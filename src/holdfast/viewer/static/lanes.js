// The lanes of one row of the graph, as a picture.

import { svg } from "./elements.js";

const WIDTH = 14;
const MOST = 10; // lanes beyond are drawn as one

export function lanesWidth(rows) {
  const most = Math.max(1, ...rows.map((row) => (row ? row.lanes.length : 1)));
  return Math.min(most, MOST + 1) * WIDTH + 4;
}

// `line` is the lane of the open thread's line.
export function lanesPicture({ row, line, width, height, mark }) {
  const middle = height / 2;
  const at = x(row.lane);
  const paths = [];
  const draw = (lane, d) => {
    const kind = lane === line ? "lane on-line" : "lane";
    paths.push(svg("path", { class: kind, d }));
  };
  row.lanes.forEach((used, lane) => {
    if (used && lane !== row.lane && lane <= MOST) draw(lane, `M${x(lane)} 0V${height}`);
  });
  if (!row.tip) draw(row.lane, `M${at} 0V${middle}`);
  for (const lane of row.ending) draw(lane, curve(x(lane), at, middle));
  if (row.parent !== null) draw(row.on_line ? line : row.lane, `M${at} ${middle}V${height}`);
  return svg(
    "svg",
    { class: "lanes", width, height, "aria-hidden": "true" },
    paths,
    mark(at, middle),
  );
}

function x(lane) {
  return Math.min(lane, MOST) * WIDTH + WIDTH / 2 + 2;
}

function curve(from, to, y) {
  return `M${from} 0C${from} ${y} ${from} ${y} ${to} ${y}`;
}
