// Branches side by side: their messages aligned, and the point where they part.

import { get } from "./api.js";
import { h } from "./elements.js";
import { plural } from "./figures.js";
import { fold } from "./folds.js";
import { signal } from "./signals.js";
import { base as baseSignal, open as openThread } from "./state.js";
import { roleClass, saidText, textBlock } from "./text.js";

const MOST = 8;
const FIRST = 4; // how many branches are compared before the reader chooses
const chosen = signal(null); // { thread, ids: heads that the reader chose }

export const compareTab = {
  id: "compare",
  title: "Compare",
  isLive: true,
  load: async ({ thread, checkpoint, base }, signal) => {
    const mine = chosen.value?.thread === thread ? chosen.value.ids : null;
    const { family } = await get("thread", { thread }, { signal });
    const points = pointsOf(family, thread, checkpoint, base);
    const ids = mine ?? points.slice(0, FIRST).map(({ id }) => id);
    const at = points
      .map(({ id }) => id)
      .filter((id) => ids.includes(id))
      .slice(0, MOST);
    const found = at.length > 1 ? await get("compare", { at }, { signal }) : null;
    return { points, at, found };
  },
  show: ({ points, at, found }, { thread }) =>
    h("div", {}, chooser(points, at, thread), found ? table(found) : nothing(points)),
};

// The selected checkpoint, the base, and the heads of the other threads of the family.
function pointsOf(family, thread, checkpoint, base) {
  const heads = family
    .filter((one) => one.head && one.id !== thread)
    .map((one) => ({ id: one.head.id ?? one.head, name: one.title ?? one.id }));
  const points = [{ id: checkpoint, name: `${thread} (selected)` }];
  if (base) points.push({ id: base, name: "◆ base" });
  const known = new Set(points.map(({ id }) => id));
  return [...points, ...heads.filter(({ id }) => !known.has(id) && known.add(id))];
}

function nothing(points) {
  const hint =
    points.length > 1
      ? "Choose at least two branches."
      : "This thread has no fork. Set a base ◆ on another checkpoint, or fork it.";
  return h("p", { class: "empty" }, hint);
}

function chooser(points, at, thread) {
  const full = at.length >= MOST;
  const box = ({ id, name }) => {
    const checked = at.includes(id);
    const toggle = () => {
      const ids = checked ? at.filter((one) => one !== id) : [...at, id];
      chosen.value = { thread, ids };
    };
    return h(
      "label",
      {},
      h("input", {
        type: "checkbox",
        checked,
        disabled: full && !checked,
        onchange: toggle,
      }),
      " ",
      name,
    );
  };
  return h(
    "fieldset",
    { class: "chooser" },
    h("legend", {}, `Branches (at most ${MOST})`),
    points.map(box),
  );
}

// --- the columns ----------------------------------------------------------------------

function table({ columns, rows, parts_at: partsAt }) {
  const head = h("tr", {}, columns.map(columnHead));
  const body = runs(rows).map((run) =>
    run.same ? sharedRow(run, columns.length) : run.rows.map(row),
  );
  const told =
    partsAt === null || partsAt === undefined
      ? "The branches have the same messages."
      : `The branches part after ${plural(shared(rows), "shared message")}.`;
  return h(
    "div",
    {},
    h("p", { class: "counts", role: "status" }, told),
    h(
      "div",
      { class: "scroll", tabIndex: 0 },
      h(
        "table",
        { class: "compare", style: { "--columns": columns.length } },
        h("thead", {}, head),
        h("tbody", {}, body),
      ),
    ),
  );
}

function columnHead({ thread, checkpoint, title, step }) {
  const go = () => openThread(thread, checkpoint);
  const compare = () => (baseSignal.value = checkpoint);
  return h(
    "th",
    { scope: "col" },
    h("button", { type: "button", class: "link", onclick: go }, title ?? thread),
    h("span", { class: "muted" }, step === undefined ? "" : ` step ${step}`),
    h(
      "button",
      {
        type: "button",
        class: "quiet",
        title: "Set as base",
        "aria-label": `Set ${title ?? thread} as base`,
        onclick: compare,
      },
      "◆",
    ),
  );
}

function shared(rows) {
  const end = rows.findIndex(({ same }) => !same);
  return end < 0 ? rows.length : end;
}

// Neighbouring rows that are all the same are one run.
function runs(rows) {
  const found = [];
  for (const one of rows) {
    const same = Boolean(one.same);
    if (found.at(-1)?.same === same) found.at(-1).rows.push(one);
    else found.push({ same, rows: [one] });
  }
  return found;
}

function sharedRow(run, width) {
  const first = run.rows[0].cells.find(Boolean)?.position ?? 0;
  const title = `${plural(run.rows.length, "message")} in all of them`;
  const body = () => run.rows.map(({ cells }) => message(cells.find(Boolean)));
  return h(
    "tr",
    { class: "same" },
    h("td", { colSpan: width }, fold(`same:${first}`, title, body)),
  );
}

function row({ cells }) {
  return h(
    "tr",
    {},
    cells.map((cell) =>
      h("td", {}, cell ? message(cell) : h("span", { class: "muted" }, "—")),
    ),
  );
}

function message(said) {
  return h(
    "div",
    { class: `message role-${roleClass(said.role)}` },
    h(
      "header",
      {},
      h("strong", {}, said.role),
      h("span", { class: "muted end" }, `[${said.position}]`),
    ),
    textBlock(saidText(said)),
  );
}
