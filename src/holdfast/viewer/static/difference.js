// What differs between the base ◆ and the selected checkpoint, value by value.

import { get } from "./api.js";
import { commandLine, copyButton, shellLine } from "./command.js";
import { h } from "./elements.js";
import { count, plural } from "./figures.js";
import { fileSection } from "./files.js";
import { fold } from "./folds.js";
import { select, setBase } from "./state.js";
import { textDifference } from "./textdiff.js";
import { isCut, plainText, saidText, valueText } from "./text.js";

const GLYPHS = { added: "+", removed: "−", changed: "~" };
const LONGEST_OPEN = 2000; // longer texts are folded
const LONG = 60; // texts above this are compared word by word

export const differenceTab = {
  id: "diff",
  title: "Diff",
  load: async ({ checkpoint, base }, signal) => {
    const about = await get("checkpoint", { id: checkpoint }, { signal });
    const from = base ?? about.parent;
    if (from === null) return { about, first: true };
    if (from === checkpoint) return { about, same: true };
    const found = await get("diff", { from, to: checkpoint }, { signal });
    const other = await get("checkpoint", { id: from }, { signal });
    return { about, other, found };
  },
  show: (loaded, { base }) => h("div", {}, heading(loaded, base), body(loaded)),
};

// --- what is compared -----------------------------------------------------------------

function heading({ about, other, first, same }, base) {
  if (first)
    return h(
      "p",
      { class: "empty" },
      "The first checkpoint has nothing before it. Set a base ◆ on another checkpoint to compare.",
    );
  if (same)
    return h(
      "p",
      { class: "empty" },
      "This checkpoint is the base ◆. Select another one.",
      parentButton(),
    );
  return h(
    "div",
    { class: "toolbar" },
    stepButton(other, base === null ? "parent" : "◆ base"),
    h("span", { "aria-hidden": "true" }, "→"),
    stepButton(about, "selected"),
    base === null ? null : swapButton(about, other),
    base === null ? null : parentButton(),
  );
}

function stepButton({ id, step, thread }, role) {
  const title = `${role}: step ${step} of ${thread}`;
  return h(
    "button",
    { type: "button", title, onclick: () => select(id) },
    h("span", { class: "muted" }, `${role} `),
    `step ${step}`,
  );
}

function swapButton(about, other) {
  const swap = () => {
    setBase(about.id);
    select(other.id);
  };
  return h(
    "button",
    { type: "button", onclick: swap, title: "Compare in the other direction" },
    "⇄ Swap",
  );
}

function parentButton() {
  return h(
    "button",
    { type: "button", onclick: () => setBase(null) },
    "Compare with parent",
  );
}

// --- what changed ---------------------------------------------------------------------

function body({ found }) {
  if (!found) return null;
  const values = found.changes.filter((change) => !isMessage(change, found));
  return [
    h("p", { class: "counts", role: "status" }, countsText(found)),
    messageSection(found.messages),
    valueSections(values),
    fileSection(found),
    found.cut ? h("p", { class: "muted" }, "More changed than is shown here.") : null,
    commandLine(shellLine("diff", found.from, found.to)),
  ];
}

function countsText({ counts, ancestor, from, files = [], more_files: more = 0 }) {
  const told = Object.entries(counts)
    .filter(([, number]) => number > 0)
    .map(([op, number]) => `${number} ${op}`);
  if (files.length) told.push(plural(files.length + more, "file"));
  const parting =
    ancestor && ancestor.id !== from ? ` · common ancestor: step ${ancestor.step}` : "";
  return (told.join(", ") || "No difference") + parting;
}

// Messages have a section of their own, so their changes are not told twice.
function isMessage({ path }, { messages }) {
  const told = messages && (messages.removed.length > 0 || messages.added.length > 0);
  return told && String(parts(path)[0]) === (messages.name ?? "messages");
}

function messageSection(messages) {
  if (!messages || (!messages.removed.length && !messages.added.length)) return null;
  const { shared, removed, added } = messages;
  return h(
    "section",
    { class: "changes" },
    h(
      "h3",
      {},
      "messages ",
      h("span", { class: "muted" }, tally(shared, removed.length, added.length)),
    ),
    pairs(removed, added).map(([old, now]) => messageChange(old, now)),
  );
}

function tally(shared, removed, added) {
  const told = [
    `${plural(shared, "message")} shared`,
    removed ? `−${removed}` : "",
    added ? `+${added}` : "",
  ];
  return told.filter(Boolean).join(", ");
}

// A removed and an added message at one position are one change of a message.
function pairs(removed, added) {
  const now = new Map(added.map((one) => [one.position, one]));
  const both = removed.map((old) => {
    const same = now.get(old.position);
    const isChange = same !== undefined && same.role === old.role;
    if (isChange) now.delete(old.position);
    return [old, isChange ? same : null];
  });
  return [...both, ...[...now.values()].map((one) => [null, one])];
}

function messageChange(old, now) {
  const op = old && now ? "changed" : old ? "removed" : "added";
  const one = now ?? old;
  const name = `[${one.position}] ${one.role ?? ""}`;
  return changeRow(op, name, old && saidText(old), now && saidText(now), null);
}

function valueSections(changes) {
  const groups = new Map();
  for (const change of changes) {
    const name = String(parts(change.path)[0] ?? "(all)");
    groups.set(name, [...(groups.get(name) ?? []), change]);
  }
  return [...groups].map(([name, group]) =>
    h("section", { class: "changes" }, h("h3", {}, name), group.map(valueChange)),
  );
}

function valueChange({ op, path, old, new: now }) {
  const text = pathText(path);
  const isPart = isCut(old) || isCut(now);
  const shown = (value) =>
    typeof value === "string" || isCut(value) ? plainText(value) : valueText(value);
  const row = changeRow(
    op,
    text,
    op === "added" ? null : shown(old),
    op === "removed" ? null : shown(now),
    text,
  );
  if (isPart) row.append(h("p", { class: "muted" }, "Only the beginning is compared."));
  return row;
}

function changeRow(op, name, old, now, path) {
  const row = h(
    "div",
    { class: `change op-${op}`, "data-anchor": `${op} ${name}` },
    h("span", { class: "glyph", "aria-hidden": "true" }, GLYPHS[op]),
    h("span", { class: "visually-hidden" }, op),
    h("span", { class: "key" }, name),
    path ? copyButton(path, "path") : null,
  );
  const length = (old?.length ?? 0) + (now?.length ?? 0);
  const title = `${count(length)} characters`;
  const text = () => differing(op, old, now);
  row.append(length > LONGEST_OPEN ? fold(`diff:${name}`, title, text) : text());
  return row;
}

function differing(op, old, now) {
  if (op === "added") return h("ins", {}, now);
  if (op === "removed") return h("del", {}, old);
  if (Math.max(old.length, now.length) < LONG) {
    return h("span", { class: "text" }, h("del", {}, old), " → ", h("ins", {}, now));
  }
  const tags = { same: "span", removed: "del", added: "ins" };
  const runs = textDifference(old, now).map((run) => h(tags[run.op], {}, run.text));
  return h("span", { class: "text" }, runs);
}

// A path is a list of keys, or already the text of one.
function parts(path) {
  return Array.isArray(path) ? path : String(path).split(/[.[/]/).filter(Boolean);
}

function pathText(path) {
  if (!Array.isArray(path)) return String(path);
  return path
    .map((key, at) => (typeof key === "number" ? `[${key}]` : `${at ? "." : ""}${key}`))
    .join("");
}
