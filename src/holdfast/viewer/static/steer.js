// What changes a thread or a checkpoint: label, tag, rewind, resolve a call.

import { get, post } from "./api.js";
import { shellLine } from "./command.js";
import { field, parsed, steerDialog } from "./dialog.js";
import { h } from "./elements.js";
import { plural } from "./figures.js";
import { fileText } from "./files.js";
import { open as openThread } from "./state.js";
import { valueText } from "./text.js";

const ADVICE =
  "The call began and its end is not recorded. Look into the system it acts on, then record what is true.";

// A checkpoint as the command line names it within its thread.
function named({ thread, id }) {
  return `${thread}@${id}`;
}

// --- label and tags -------------------------------------------------------------------

export function labelDialog(about) {
  const name = h("input", { value: about.label ?? "", autocomplete: "off" });
  steerDialog({
    title: `Label of step ${about.step}`,
    action: "Save",
    thread: about.thread,
    content: field("Label", name, "A name for this checkpoint. Empty removes it."),
    command: () => shellLine("label", named(about), name.value || "--delete"),
    send: () =>
      post("label", {
        checkpoint: about.id,
        label: name.value || null,
        expect: about.label ?? null,
      }),
  });
}

export function tagDialog(about) {
  const boxes = about.tags.map((name) =>
    h("input", { type: "checkbox", checked: true, value: name }),
  );
  const added = h("input", { autocomplete: "off" });
  const changes = () => ({
    add: added.value.trim() ? [added.value.trim()] : [],
    remove: boxes.filter((box) => !box.checked).map((box) => box.value),
  });
  steerDialog({
    title: `Tags of step ${about.step}`,
    action: "Save",
    thread: about.thread,
    content: [
      boxes.map((box) => h("label", { class: "check" }, box, ` ${box.value}`)),
      field("Another tag", added),
    ],
    command: () => tagCommand(about, changes()),
    send: () => post("tag", { checkpoint: about.id, ...changes() }),
  });
}

function tagCommand(about, { add, remove }) {
  const words = ["tag", named(about)];
  const lines = [
    remove.length ? shellLine(...words, "--delete", ...remove) : "",
    add.length || !remove.length ? shellLine(...words, ...add) : "",
  ];
  return lines.filter(Boolean).join(" && ");
}

// --- rewind ---------------------------------------------------------------------------

export async function rewindDialog(about, thread) {
  const preview = await get("rewind", { thread, to: about.id });
  steerDialog({
    title: `Rewind ${thread} to step ${about.step}`,
    action: "Rewind",
    thread,
    content: previewOf(preview),
    command: () => shellLine("rewind", `${thread}@${about.id}`, "--yes"),
    send: () => post("rewind", { thread, to: about.id, expect: preview.from.id }),
    done: () => openThread(thread, about.id),
  });
}

function previewOf({
  steps,
  changes,
  left_behind: behind,
  unsaved_messages: unsaved,
  files = [],
  more_files: moreFiles = 0,
  from,
}) {
  return [
    h(
      "p",
      {},
      steps === null
        ? "This checkpoint is not on the line of the head."
        : `The head goes back by ${plural(steps, "step")}.`,
    ),
    h(
      "p",
      { class: "muted" },
      `The head of now, step ${from.step}, stays stored: holdfast undo goes back to it.`,
    ),
    list(
      `${plural(changes.length, "value")} of the state would change`,
      changes.map(changeText),
    ),
    list(
      `${plural(files.length + moreFiles, "file")} would differ; no folder is touched: holdfast restore writes them`,
      files.map(fileText),
    ),
    list(
      `${plural(behind.length, "effect")} would be left behind: they happened and cannot be taken back`,
      behind.map(effectText),
      "warn",
    ),
    unsaved
      ? h(
          "p",
          { class: "warn" },
          `${plural(unsaved, "message")} that no checkpoint has yet would be passed over.`,
        )
      : null,
  ];
}

function list(title, texts, kind = "") {
  if (!texts.length) return null;
  return h(
    "details",
    { class: kind, open: texts.length <= 10 },
    h("summary", {}, title),
    h(
      "ul",
      {},
      texts.map((text) => h("li", {}, text)),
    ),
  );
}

function changeText({ op, path }) {
  return `${op} ${Array.isArray(path) ? path.join(".") : path}`;
}

function effectText({ tool, arguments: given }) {
  return `${tool} ${valueText(given)}`;
}

// --- resolve an interrupted call ------------------------------------------------------

export function resolveDialog(effect) {
  const { tool, call, thread } = effect;
  const ended = h(
    "select",
    {},
    h("option", { value: "result" }, "It happened"),
    h("option", { value: "error" }, "It failed"),
  );
  const text = h("textarea", { rows: 4, spellcheck: false });
  const said = () => text.value || (ended.value === "error" ? "" : "null");
  const outcome = () =>
    ended.value === "error"
      ? { error: said() }
      : { result: parsed(said(), "The result") };
  steerDialog({
    title: `Resolve the call of ${tool}`,
    action: "Record",
    thread,
    content: [
      h("p", { class: "muted" }, ADVICE),
      field("What became of it", ended),
      field("Its result as JSON, or its error as text", text),
    ],
    command: () => shellLine("resolve", thread, call, `--${ended.value}`, said()),
    send: () => post("resolve", { thread, call, ...outcome() }),
  });
}
