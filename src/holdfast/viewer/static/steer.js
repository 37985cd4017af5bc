// What changes the store: fork, edit and fork, label, tag, rewind, resolve a call.

import { get, post } from "./api.js";
import { quoted } from "./command.js";
import { field, FieldError, steerDialog } from "./dialog.js";
import { h } from "./elements.js";
import { plural } from "./figures.js";
import { open as openThread } from "./state.js";
import { valueText } from "./text.js";

function line(...words) {
  return words.filter((one) => one !== null).map((one, at) => (at ? quoted(one) : one)).join(" ");
}

function parsed(text, where) {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new FieldError(`${where} is not JSON: ${error.message}. Texts need quotation marks.`);
  }
}

// --- fork -----------------------------------------------------------------------------

export async function forkDialog(about, { edit = false, path = "" } = {}) {
  const name = h("input", { required: true, autocomplete: "off", value: freeName(about) });
  const edits = edit ? editFields(about, path) : null;
  const values = () => (edits ? edits.values() : {});
  const { refresh } = steerDialog({
    title: edit ? `Edit the state of step ${about.step} and fork` : `Fork from step ${about.step}`,
    action: "Fork",
    thread: about.thread,
    content: [
      h("p", { class: "muted" }, "A new thread begins here. Nothing is copied and the thread it comes from stays as it is."),
      field("Name of the new thread", name),
      edits?.element ?? null,
    ],
    command: () => line("holdfast fork", about.id, name.value, ...(edits?.arguments() ?? [])),
    send: () => post("fork", { from: about.id, thread: name.value, ...(edits ? { set: values() } : {}) }),
    done: () => openThread(name.value),
  });
  edits?.start(refresh);
}

function freeName({ thread, step }) {
  return `${thread}-from-${step}`;
}

// One value of the state, chosen by its path, as JSON.
function editFields(about, path) {
  const where = h("input", { required: true, value: path, placeholder: "plan.cursor", autocomplete: "off" });
  const text = h("textarea", { rows: 8, spellcheck: false, required: true });
  const told = h("small", { class: "muted", role: "status" });
  const fetched = async () => {
    const found = await get("part", { checkpoint: about.id, path: where.value }).catch(() => null);
    if (found) text.value = JSON.stringify(found.value, null, 2);
    told.textContent = found ? "" : "The state has nothing there yet: the fork adds it.";
  };
  text.addEventListener("input", () => (told.textContent = problemOf(text.value)));
  return {
    element: [field("Value of the state (a path)", where), field("New value, as JSON", text), told],
    values: () => ({ [where.value]: parsed(text.value, "The value") }),
    arguments: () => (where.value ? ["--set", `${where.value}=${text.value}`] : []),
    start: async (refresh) => {
      where.addEventListener("change", () => fetched().then(refresh));
      if (path) await fetched().then(refresh);
    },
  };
}

function problemOf(text) {
  try {
    JSON.parse(text);
    return "Valid JSON.";
  } catch (error) {
    return `Not JSON yet: ${error.message}`;
  }
}

// --- label and tags -------------------------------------------------------------------

export function labelDialog(about) {
  const name = h("input", { value: about.label ?? "", autocomplete: "off" });
  steerDialog({
    title: `Label of step ${about.step}`,
    action: "Save",
    thread: about.thread,
    content: field("Label", name, "A name for this checkpoint. Empty removes it."),
    command: () => line("holdfast label", about.id, name.value || "--delete"),
    send: () => post("label", { checkpoint: about.id, label: name.value || null, expect: about.label ?? null }),
  });
}

export function tagDialog(about) {
  const before = about.tags ?? [];
  const names = h("input", { value: before.join(", "), autocomplete: "off" });
  const changes = () => {
    const now = names.value.split(",").map((one) => one.trim()).filter(Boolean);
    return { add: now.filter((one) => !before.includes(one)), remove: before.filter((one) => !now.includes(one)) };
  };
  const command = () => {
    const { add, remove } = changes();
    const lines = [
      remove.length ? line("holdfast tag", about.id, "--delete", ...remove) : "",
      add.length || !remove.length ? line("holdfast tag", about.id, ...add) : "",
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
    command: () => line("holdfast rewind", `${thread}@${about.step}`),
    send: () => post("rewind", { thread, to: about.id, expect: preview.from.id }),
    done: () => openThread(thread, about.id),
  });
}

function previewOf({ steps, changes, counts, left_behind: behind, unsaved_messages: unsaved, from }) {
  return [
    h("p", {}, steps === null ? "This checkpoint is not on the line of the head." : `The head goes back by ${plural(steps, "step")}.`),
    h("p", { class: "muted" }, `The head of now, step ${from.step}, stays stored: holdfast undo goes back to it.`),
    list(`${plural(changes.length, "value")} of the state would change`, changes.map(changeText)),
    list(`${plural(behind.length, "effect")} would be left behind: they happened and cannot be taken back`, behind.map(effectText), "warn"),
    unsaved ? h("p", { class: "warn" }, `${plural(unsaved, "message")} that no checkpoint has yet would be passed over.`) : null,
    counts ? null : null,
  ];
}

function list(title, texts, kind = "") {
  if (!texts.length) return null;
  return h("details", { class: kind, open: texts.length <= 10 }, h("summary", {}, title), h("ul", {}, texts.map((text) => h("li", {}, text))));
}

function changeText({ op, path }) {
  return `${op} ${Array.isArray(path) ? path.join(".") : path}`;
}

function effectText({ tool, arguments: given }) {
  return `${tool} ${valueText(given)}`;
}

// --- resolve an interrupted call ------------------------------------------------------

export function resolveDialog(effect, thread) {
  const ended = h("select", {}, h("option", { value: "result" }, "It happened"), h("option", { value: "error" }, "It failed"));
  const text = h("textarea", { rows: 4, spellcheck: false });
  const outcome = () => (ended.value === "error" ? { error: text.value } : { result: parsed(text.value || "null", "The result") });
  steerDialog({
    title: `Resolve the call of ${effect.tool}`,
    action: "Record",
    thread,
    content: [
      h("p", { class: "muted" }, "The call began and its end is not recorded. Look into the system it acts on, then record what is true."),
      field("What became of it", ended),
      field("Result as JSON, or the error", text),
    ],
    command: () => effect.commands?.resolve ?? line("holdfast effects", thread),
    send: () => post("resolve", { thread, call: effect.call, ...outcome() }),
  });
}
