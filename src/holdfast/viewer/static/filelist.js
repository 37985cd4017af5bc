// The files that were saved with a checkpoint, and the content of each that is opened.

import { get } from "./api.js";
import { busyButton } from "./busy.js";
import { commandLine, shellLine } from "./command.js";
import { fill, h } from "./elements.js";
import { bytes, count, plural } from "./figures.js";
import { GLYPHS } from "./files.js";
import { fold, isOpened } from "./folds.js";
import { problem } from "./problem.js";
import { isCut, plainText } from "./text.js";

export const filesTab = {
  id: "files",
  title: "Files",
  // Opened files come with the list, so that they do not flicker while scrubbing.
  load: async ({ checkpoint }, signal) => {
    const page = await get("files", { checkpoint }, { signal });
    const opened = page.files.filter((file) => isOpened(keyOf(file)));
    const found = opened.map(async ({ position }) => [
      position,
      await get("file", { checkpoint, position }, { signal }).catch(() => null),
    ]);
    return { page, known: new Map(await Promise.all(found)) };
  },
  show: ({ page, known }, { checkpoint }) =>
    page.saved ? listing(page, known, checkpoint) : nothing(),
};

function nothing() {
  return h("p", { class: "empty" }, "No files were saved with this checkpoint.");
}

function listing(page, known, checkpoint) {
  const list = h("div", { class: "changes" }, rows(page, known, checkpoint));
  return h(
    "div",
    {},
    h("p", { class: "counts", role: "status" }, summary(page)),
    list,
    moreButton(list, page, checkpoint),
    names("Removed here", page.removed, page.counts.removed - page.removed.length),
    names(
      "Left out of the snapshot",
      page.omitted.map(({ path, reason }) => `${path}: ${reason}`),
      page.more_omitted,
    ),
  );
}

function summary({ total, bytes: size, counts }) {
  const told = Object.entries(counts)
    .filter(([, number]) => number > 0)
    .map(([op, number]) => `${count(number)} ${op}`);
  const here = told.length ? `here ${told.join(", ")}` : "none changed here";
  return `${plural(total, "file")}, ${bytes(size)} · ${here}`;
}

function rows({ files }, known, checkpoint) {
  return files.map((file) => row(file, known.get(file.position), checkpoint));
}

function row(file, known, checkpoint) {
  const op = file.change ?? "same";
  const line = h(
    "div",
    { class: `change op-${op.split(" ").at(-1)}`, "data-anchor": file.path },
    h("span", { class: "glyph", "aria-hidden": "true" }, GLYPHS[op] ?? "·"),
    h("span", { class: "key" }, file.path),
    h("span", { class: "muted" }, ` ${facts(file)}`),
  );
  if (file.kind !== "folder") line.append(contentFold(file, known, checkpoint));
  return line;
}

function facts({ kind, size, mode, change }) {
  const told = [kind === "file" ? bytes(size) : kind, mode.slice(-3), change];
  return told.filter(Boolean).join(" · ");
}

function keyOf({ path }) {
  return `content:${path}`;
}

function contentFold(file, known, checkpoint) {
  const box = h("div", { class: "file" });
  const load = async () => {
    const { position } = file;
    try {
      fill(box, content(await get("file", { checkpoint, position }), position, checkpoint));
    } catch (error) {
      fill(box, problem(error, load));
    }
  };
  return fold(keyOf(file), "content", () => {
    if (known) fill(box, content(known, file.position, checkpoint));
    else load();
    return box;
  });
}

function content(file, position, checkpoint) {
  const where = { checkpoint, file: position };
  return [
    file.media ? picture(file, where) : textOf(file, where),
    commandLine(shellLine("show", `${checkpoint}:${file.path}`)),
  ];
}

function textOf({ text, size, kind }, where) {
  if (text === null) return h("p", { class: "muted" }, `Not text: ${bytes(size)}.`);
  const shown = h("pre", {}, kind === "link" ? "→ " : "", plainText(text));
  if (!isCut(text)) return shown;
  const button = busyButton(`Show all ${count(text.length)} characters`, async () => {
    fill(shown, (await get("part", where)).text);
    button.remove();
  });
  return [shown, button];
}

function picture({ path, size, media }, where) {
  const box = h("div", { class: "attachment" });
  const show = async () => {
    const { base64 } = await get("part", where);
    fill(box, h("img", { src: `data:${media};base64,${base64}`, alt: path }));
  };
  box.append(busyButton(`image ${bytes(size)} — show`, show));
  return box;
}

function moreButton(list, page, checkpoint) {
  if (page.next === null) return null;
  let cursor = page.next;
  const label = () => `${count(cursor)} of ${plural(page.total, "file")} — show more`;
  const show = async (button) => {
    const found = await get("files", { checkpoint, cursor });
    list.append(...rows(found, new Map(), checkpoint));
    if (found.next === null) return button.remove();
    cursor = found.next;
    button.textContent = label();
  };
  return busyButton(label(), show, { class: "page" });
}

function names(title, paths, more) {
  if (!paths.length) return null;
  return h(
    "section",
    {},
    h("h3", {}, title),
    h("ul", { class: "names" }, paths.map((path) => h("li", {}, path))),
    more > 0 ? h("p", { class: "muted" }, `${count(more)} more.`) : null,
  );
}
