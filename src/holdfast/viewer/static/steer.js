// What changes a thread or a checkpoint: label, tag, rewind, resolve a call.

import { get, post } from "./api.js";
import { shellLine } from "./command.js";
import { field, parsed, steerDialog } from "./dialog.js";
import { h } from "./elements.js";
import { plural } from "./figures.js";
import { open as openThread } from "./state.js";
import { valueText } from "./text.js";

// --- label and tags -------------------------------------------------------------------

export function labelDialog(about) {
  const name = h("input", { value: about.label ?? "", autocomplete: "off" });
  steerDialog({
    title: `Label of step ${about.step}`,
    action: "Save",
    thread: about.thread,
    content: field("Label", name, "A name for this checkpoint. Empty removes it."),
    command: () => shellLine("label", about.id, name.value || "--delete"),
    send: () =>
      post("label", {
        checkpoint: about.id,
        label: name.value || null,
        expect: about.label ?? null,
      }),
  });
}

export function tagDialog(about) {
  const before = about.tags ?? [];
  const names = h("input", { value: before.join(", "), autocomplete: "off" });
  const changes = () => {
    const now = names.value
      .split(",")
      .map((one) => one.trim())
      .filter(Boolean);
    return {
      add: now.filter((one) => !before.includes(one)),
      remove: before.filter((one) => !now.includes(one)),
    };
  };
  const command = () => {
    const { add, remove } = changes();
    const lines = [
      remove.length ? shellLine("tag", about.id, "--delete", ...remove) : "",
      add.length || !remove.length ? shellLine("tag", about.id, ...add) : "",
    ];
    return lines.filter(Boolean).join(" && ");
  };
  steerDialog({
    title: `Tags of step ${about.step}`,
    action: "Save",
    thread: about.thread,
    content: field("Tags, with commas between", names),
    command,
    send: () => post("tag", { checkpoint: about.id, ...changes() }),
  });
}

// --- rewind ---------------------------------------------------------------------------

export async function rewindDialog(about, thread) {
  const preview = await get("rewind", { thread, to: about.id });
  steerDialog({
    title: `Rewind ${thread} to step ${about.step}`,
    action: "Rewind",
    thread,
    content: previewOf(preview),
    command: () => shellLine("rewind", `${thread}@${about.step}`),
    send: () => post("rewind", { thread, to: about.id, expect: preview.from.id }),
    done: () => openThread(thread, about.id),
  });
}

function previewOf({
  steps,
  changes,
  left_behind: behind,
  unsaved_messages: unsaved,
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

export function resolveDialog(effect, thread) {
  const ended = h(
    "select",
    {},
    h("option", { value: "result" }, "It happened"),
    h("option", { value: "error" }, "It failed"),
  );
  const text = h("textarea", { rows: 4, spellcheck: false });
  const outcome = () =>
    ended.value === "error"
      ? { error: text.value }
      : { result: parsed(text.value || "null", "The result") };
  steerDialog({
    title: `Resolve the call of ${effect.tool}`,
    action: "Record",
    thread,
    content: [
      h(
        "p",
        { class: "muted" },
        "The call began and its end is not recorded. Look into the system it acts on, then record what is true.",
      ),
      field("What became of it", ended),
      field("Result as JSON, or the error", text),
    ],
    command: () => effect.commands?.resolve ?? shellLine("effects", thread),
    send: () => post("resolve", { thread, call: effect.call, ...outcome() }),
  });
}
