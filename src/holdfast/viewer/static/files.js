// The files in which two checkpoints differ, each with its lines.

import { h } from "./elements.js";
import { bytes, plural } from "./figures.js";
import { fold } from "./folds.js";
import { isCut, plainText } from "./text.js";

export const GLYPHS = { added: "+", removed: "−", changed: "~", "mode changed": "~" };
const TAGS = { "+": "ins", "-": "del" };

export function fileSection({ files = [], more_files: more = 0 }) {
  if (!files.length) return null;
  return h(
    "section",
    { class: "changes" },
    h("h3", {}, "files ", h("span", { class: "muted" }, plural(files.length + more, "file"))),
    files.map(fileRow),
    more ? h("p", { class: "muted" }, `${plural(more, "file")} more.`) : null,
  );
}

// A file in one line, as the preview of a rewind has it.
export function fileText({ op, path }) {
  return `${GLYPHS[op]} ${path}`;
}

function fileRow(file) {
  const { op, path, lines } = file;
  const row = h(
    "div",
    { class: `change op-${op.split(" ").at(-1)}`, "data-anchor": `${op} ${path}` },
    h("span", { class: "glyph", "aria-hidden": "true" }, GLYPHS[op]),
    h("span", { class: "visually-hidden" }, op),
    h("span", { class: "key" }, path),
    h("span", { class: "muted" }, ` ${sizesText(file)}`),
  );
  if (plainText(lines)) row.append(fold(`file:${path}`, "lines", () => linesOf(lines)));
  return row;
}

function sizesText({ op, old_size: before, new_size: now }) {
  const sizes = [before, now].filter((size) => size !== null).map(bytes);
  return op === "mode changed" ? "mode" : sizes.join(" → ");
}

function linesOf(lines) {
  return h(
    "pre",
    {},
    plainText(lines)
      .split("\n")
      .map((line) => h(TAGS[line[0]] ?? "span", {}, `${line}\n`)),
    isCut(lines) ? "…" : null,
  );
}
