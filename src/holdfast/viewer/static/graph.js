// The branch graph: the checkpoints of a family of threads in lanes, newest first.

import { get } from "./api.js";
import { fill, h } from "./elements.js";
import { count, plural } from "./figures.js";
import { lanesWidth } from "./lanes.js";
import { Log } from "./log.js";
import { minimap } from "./minimap.js";
import { card, failure, loadCard } from "./opened.js";
import { problem } from "./problem.js";
import { newestOnly } from "./request.js";
import { rem, virtualRows } from "./rows.js";
import { FoldedRows, runsOf } from "./runs.js";
import { computed, effect, signal } from "./signals.js";
import { base, changed, checkpoint, pane, place, select, thread } from "./state.js";
import { emptyRow, runRow, stepRow } from "./steps.js";

const ROW = 1.75; // rem
const MOST_LOADED = 1000; // so many rows are loaded at once, to fold them all
const SCOPES = { family: "family", line: "this line", all: "rewound too" };

export function graphPane() {
  const scope = signal("family");
  const folds = signal(true);
  const log = signal(null);
  const loaded = signal(null); // the log whose first page is there
  const openedId = computed(() => card.value?.id ?? null);
  const unfolded = signal(new Set());
  const latest = newestOnly();
  const latestFind = newestOnly();
  const message = h("div", { class: "pane-message" });
  const runs = runsByVersion();
  let lines = new FoldedRows([]);
  let drawn = { log: null, grown: 0 };
  let view = { width: 0, height: 0 };

  const length = () => lines.count(log.peek()?.total ?? 0);

  const list = virtualRows({
    label: "Checkpoints",
    rowHeight: () => ROW,
    render: (index) => rendered(log.peek(), lines.line(index), view),
    chosen: (index) => choose(lines.line(index)),
    seen: (first, last) => {
      if (log.peek() === null) return;
      const [begin, end] = [lines.line(first), lines.line(last)];
      log.peek().ensure(begin.first, end.first + end.count - 1).catch(showProblem);
      map.show(begin.first, end.first + end.count);
      if (lanesWidth(inSight(log.peek())) !== view.width) queueMicrotask(draw);
    },
  });
  list.element.id = "graph";
  const map = minimap((at) => list.reveal(lines.lineOf(at)));

  const choose = ({ first, count: steps }) => {
    const row = log.peek().row(first);
    if (row === undefined) return;
    if (steps > 1) unfolded.value = new Set([...unfolded.peek(), row.id]);
    else {
      select(row.id, row);
      if (pane.peek() === "graph" && narrow()) pane.value = "detail";
    }
  };

  const showProblem = (error) => fill(message, problem(error, load));

  const load = async () => {
    const asked = log.peek();
    if (asked === null) return;
    try {
      await latest(async (abort) => {
        await asked.load(abort);
        if (folds.peek() && asked.total <= MOST_LOADED) await asked.all(abort);
      });
      fill(message);
      loaded.value = asked;
      const row = asked.row(asked.indexOf(checkpoint.peek()));
      if (row) place.value = row;
      else if (place.peek()?.id !== checkpoint.peek()) reveal();
    } catch (error) {
      showProblem(error);
    }
  };

  // Rows come on top, and runs are folded as they are loaded: what the reader looks at
  // stays where it is.
  const fold = (rows) => {
    const { scrollTop } = list.element;
    const top = Math.floor(scrollTop / view.height);
    const row = lines.line(top).first + rows.grown - drawn.grown;
    const stays = drawn.log === rows && scrollTop > 0;
    lines = new FoldedRows(folds.peek() ? runs(rows).filter(isClosed(rows)) : []);
    list.resize(length());
    if (stays) list.element.scrollTop = scrollTop + (lines.lineOf(row) - top) * view.height;
    drawn = { log: rows, grown: rows.grown };
  };

  const isClosed = (rows) => {
    const kept = [checkpoint, base].map((one) => rows.indexOf(one.peek()));
    return ({ id, first, count: steps }) =>
      !unfolded.peek().has(id) && !kept.some((at) => first <= at && at < first + steps);
  };

  const draw = () => {
    const rows = log.peek();
    if (rows === null) return list.refresh(0);
    fold(rows);
    view = {
      thread: thread.peek(),
      selected: checkpoint.peek(),
      base: base.peek(),
      width: lanesWidth(inSight(rows)),
      height: ROW * rem(),
    };
    list.refresh(length());
    map.draw(rows, rows.indexOf(view.selected));
  };

  const inSight = (rows) => {
    const [first, last] = list.range();
    return Array.from({ length: last - first + 1 }, (_, at) => rows.row(lines.line(first + at).first));
  };

  // The selected checkpoint may be on a page that is not loaded yet.
  const reveal = async () => {
    const rows = log.peek();
    const id = checkpoint.peek();
    if (rows === null || rows.total === 0 || id === null) return;
    if (scope.peek() === "line" && place.peek()?.on_line === false) return outside(id);
    const at = await latestFind((abort) => rows.find(id, abort)).catch(() => -1);
    if (at === undefined || checkpoint.peek() !== id) return;
    if (at < 0) return outside(id);
    place.value = rows.row(rows.indexOf(id)) ?? null;
    list.activate(lines.lineOf(rows.indexOf(id)));
  };

  // The selected checkpoint may not be in the log of one line.
  const outside = async (id) => {
    const row = await get("checkpoint", { id }).catch(() => null);
    if (checkpoint.peek() === id && row !== null) place.value = row;
  };

  effect(() => {
    const opened = openedId.value;
    log.value = opened === null ? null : new Log(opened, scope.value, card.peek().steps);
    unfolded.value = new Set();
    load();
  });
  effect(() => void (changed.value && load()));
  effect(() => {
    folds.value, unfolded.value, base.value, checkpoint.value;
    log.value?.version.value;
    draw();
  });
  effect(() => {
    checkpoint.value;
    if (loaded.value === log.value) reveal();
  });
  effect(() => void (failure.value && fill(message, problem(failure.value, loadCard))));

  return h(
    "section",
    { class: "pane graph", "aria-label": "History" },
    heading(scope, folds, log),
    h("div", { class: "graph-body" }, list.element, map.element),
    message,
  );
}

function narrow() {
  return matchMedia("(max-width: 43.74rem)").matches;
}

// Scrubbing draws often; what is loaded changes seldom.
function runsByVersion() {
  let known = { log: null, version: 0, runs: [] };
  return (log) => {
    const version = log.version.peek();
    if (known.log !== log || known.version !== version) {
      known = { log, version, runs: runsOf(log) };
    }
    return known.runs;
  };
}

function rendered(log, { first, count: steps, tool }, view) {
  const row = log?.row(first);
  if (row === undefined) return emptyRow();
  const step = { row, line: lineAbove(log, first) };
  return steps > 1 ? runRow({ ...step, count: steps, tool }, view) : stepRow(step, view);
}

// The lane in which the open thread's line comes down to this row: that of the next
// newer row on the line. Looking far up would cost more than the colour is worth.
function lineAbove(log, index) {
  for (let above = index - 1; above >= Math.max(0, index - 200); above -= 1) {
    const row = log.row(above);
    if (row === undefined) return undefined;
    if (row.on_line) return row.parent === null ? undefined : row.lane;
  }
  return undefined;
}

function heading(scope, folds, log) {
  const title = h("h2", {});
  const about = h("p", { class: "muted" });
  const choice = h(
    "select",
    { "aria-label": "Which checkpoints", onchange: () => (scope.value = choice.value) },
    Object.entries(SCOPES).map(([value, text]) => h("option", { value }, text)),
  );
  const fold = h(
    "button",
    {
      type: "button",
      class: "quiet",
      title: "Show runs of tool steps as one row",
      onclick: () => (folds.value = !folds.value),
    },
    "Fold tools",
  );
  effect(() => fold.setAttribute("aria-pressed", folds.value));
  effect(() => {
    const opened = card.value;
    log.value?.version.value;
    const others = (opened?.family?.length ?? 1) - 1;
    fill(title, opened ? opened.title || opened.id : "");
    fill(about, opened ? summary(opened, log.peek(), others) : "");
  });
  return h("header", { class: "pane-head" }, title, about, choice, fold);
}

function summary(opened, log, others) {
  const from = opened.forked_from;
  return [
    log?.total ? plural(log.total, "checkpoint") : null,
    others ? `${count(others)} ${others === 1 ? "fork" : "forks"}` : null,
    from ? `forked from ${from.thread ?? from}` : null,
  ].filter(Boolean).join(" · ");
}
