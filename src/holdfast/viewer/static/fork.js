// Forks: a new thread from a checkpoint, with the same state or an edited one.

import { get, post } from "./api.js";
import { shellLine } from "./command.js";
import { field, parsed, steerDialog } from "./dialog.js";
import { h } from "./elements.js";
import { bytes } from "./figures.js";
import { open as openThread } from "./state.js";

const LARGEST = 1_000_000; // bytes of a state that one wants to edit as a whole
const MEANING =
  "A new thread begins here. Nothing is copied, and the thread it comes from stays as it is.";

export function forkDialog(about, { edit = false, path = null } = {}) {
  const name = h("input", {
    required: true,
    autocomplete: "off",
    value: `${about.thread}-from-${about.step}`,
  });
  const edits = edit ? editFields(about, path) : null;
  const { refresh } = steerDialog({
    title: edit
      ? `Edit the state of step ${about.step} and fork`
      : `Fork from step ${about.step}`,
    action: "Fork",
    thread: about.thread,
    content: [h("p", { class: "muted" }, MEANING), field("Name", name), edits?.element],
    command: () =>
      shellLine("fork", about.id, name.value, ...(edits?.options() ?? [])) +
      (edits?.note() ?? ""),
    send: () => {
      const changes = edits?.changes() ?? {};
      return post("fork", { from: about.id, thread: name.value, ...changes });
    },
    done: ({ thread }) => openThread(thread),
  });
  edits?.load().then(refresh);
}

// One value of the state, chosen by its path, or the whole state, as JSON.
function editFields(about, path) {
  const where = h("input", { value: path ?? "", autocomplete: "off" });
  const text = h("textarea", { rows: 10, spellcheck: false, required: true });
  const told = h("small", { class: "muted", role: "status" });
  const load = async () => {
    const isWhole = where.value === "";
    if (isWhole && about.size > LARGEST) {
      told.textContent = `The state has ${bytes(about.size)}: give the path of a value.`;
      return;
    }
    const asked = { checkpoint: about.id, path: where.value };
    const found = await get("part", asked).catch((error) => error);
    const isFound = !(found instanceof Error);
    if (isFound) text.value = JSON.stringify(found.value, null, 2);
    told.textContent = isFound ? "" : `${found.message}. The fork will add this value.`;
  };
  where.addEventListener("change", load);
  text.addEventListener("input", () => (told.textContent = verdict(text.value)));
  return {
    load,
    element: [
      field(
        "Path of the value, such as /plan/cursor; empty for the whole state",
        where,
      ),
      field("Value as JSON", text),
      told,
    ],
    changes: () => {
      const value = parsed(text.value, "The value");
      return where.value === "" ? { state: value } : { set: { [where.value]: value } };
    },
    // The command line has no option for a whole state.
    note: () => (where.value === "" ? "  # and save the state with thread.save()" : ""),
    options: () =>
      where.value === "" ? [] : [`--set=${where.value}=${compact(text.value)}`],
  };
}

function compact(text) {
  try {
    return JSON.stringify(JSON.parse(text));
  } catch {
    return text;
  }
}

function verdict(text) {
  try {
    JSON.parse(text);
    return "Valid JSON.";
  } catch (error) {
    return `Not JSON yet: ${error.message}`;
  }
}
