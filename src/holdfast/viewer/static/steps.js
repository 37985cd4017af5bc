// One checkpoint, or one folded run of them, as a row of the graph.

import { h, svg } from "./elements.js";
import { compact, cost, count, duration } from "./figures.js";
import { lanesPicture } from "./lanes.js";
import { day, time } from "./times.js";

// `view`: { thread, selected, base, width, height } of the whole graph.
export function stepRow({ row, line }, view) {
  const selected = row.id === view.selected;
  const isBase = row.id === view.base;
  return h(
    "div",
    {
      class: ["step", row.on_line ? "on-line" : "off-line", row.error ? "failed" : ""].join(" "),
      "aria-selected": String(selected),
      "data-checkpoint": row.id,
      "data-base": isBase,
      title: row.id,
    },
    lanesPicture({ row, line, ...view, mark: (x, y) => mark(row, x, y, selected, isBase) }),
    h("span", { class: "step-time muted" }, h("span", { class: "step-day" }, day(row.at)), time(row.at)),
    h("span", { class: "step-kind" }, row.error ? errorMark() : null, kindOf(row)),
    h("span", { class: "step-text" }, chips(row, view, isBase), textOf(row)),
    h("span", { class: "step-figures muted" }, figures(row)),
  );
}

export function runRow({ row, line, count: steps, tool }, view) {
  return h(
    "div",
    { class: "step run", "data-run": row.id },
    lanesPicture({ row, line, ...view, mark: runMark }),
    h("span", { class: "step-text" }, `${count(steps)} ${tool ? `steps of ${tool}` : "tool steps"}`),
    h("span", { class: "step-figures muted" }, "show"),
  );
}

// A row whose page is on its way.
export function emptyRow() {
  return h("div", { class: "step waiting" }, h("span", { class: "step-text muted" }, "loading"));
}

function mark(row, x, y, selected, isBase) {
  const ring = selected ? svg("circle", { class: "ring", cx: x, cy: y, r: 7 }) : null;
  const lined = row.on_line ? "dot on-line" : "dot";
  if (row.error) {
    const d = `M${x - 4} ${y - 4}l8 8m0-8l-8 8`;
    return [ring, svg("circle", { class: "hole", cx: x, cy: y, r: 6 }), svg("path", { class: "cross", d })];
  }
  if (isBase) return [ring, svg("path", { class: lined, d: `M${x} ${y - 6}l6 6-6 6-6-6z` })];
  return [ring, svg("circle", { class: lined, cx: x, cy: y, r: 4 })];
}

function runMark(x, y) {
  return [-5, 0, 5].map((offset) => svg("circle", { class: "dot run-dot", cx: x, cy: y + offset, r: 1.6 }));
}

function errorMark() {
  return [h("span", { class: "bad", "aria-hidden": "true" }, "✖ "), h("span", { class: "visually-hidden" }, "failed ")];
}

function kindOf(row) {
  return row.role ?? row.kind ?? "";
}

function textOf(row) {
  const said = typeof row.text === "string" ? row.text : (row.text?.text ?? "");
  if (!row.tool) return said;
  const rest = said.startsWith(`${row.tool}(`) ? said.slice(row.tool.length) : ` ${said}`;
  return [h("span", { class: "mono step-tool" }, row.tool), rest];
}

function chips(row, { thread }, isBase) {
  return [
    isBase ? h("span", { class: "chip label" }, "◆ base") : null,
    row.heads.map((name) =>
      h("span", { class: name === thread ? "chip here" : "chip head" }, name),
    ),
    row.label ? h("span", { class: "chip label" }, row.label) : null,
    row.tags.map((tag) => h("span", { class: "chip" }, `#${tag}`)),
  ];
}

function figures(row) {
  return [
    h("span", { class: "step-tokens" }, row.tokens ? `${compact(row.tokens)} tok` : ""),
    h("span", { class: "step-cost" }, row.cost ? cost(row.cost) : ""),
    h("span", { class: "step-took" }, row.took_ms ? duration(row.took_ms) : ""),
  ];
}
