// Forks: a new thread from a checkpoint, with the same state or an edited one.

import { get, post } from "./api.js";
import { shellLine } from "./command.js";
import { field, parsed, steerDialog } from "./dialog.js";
import { h } from "./elements.js";
import { open as openThread } from "./state.js";

export async function forkDialog(about, { edit = false, path = "" } = {}) {
  const name = h("input", {
    required: true,
    autocomplete: "off",
    value: freeName(about),
  });
  const edits = edit ? editFields(about, path) : null;
  const values = () => (edits ? edits.values() : {});
  const { refresh } = steerDialog({
    title: edit
      ? `Edit the state of step ${about.step} and fork`
      : `Fork from step ${about.step}`,
    action: "Fork",
    thread: about.thread,
    content: [
      h(
        "p",
        { class: "muted" },
        "A new thread begins here. Nothing is copied and the thread it comes from stays as it is.",
      ),
      field("Name of the new thread", name),
      edits?.element ?? null,
    ],
    command: () =>
      shellLine("fork", about.id, name.value, ...(edits?.arguments() ?? [])),
    send: () =>
      post("fork", {
        from: about.id,
        thread: name.value,
        ...(edits ? { set: values() } : {}),
      }),
    done: () => openThread(name.value),
  });
  edits?.start(refresh);
}

function freeName({ thread, step }) {
  return `${thread}-from-${step}`;
}

// One value of the state, chosen by its path, as JSON.
function editFields(about, path) {
  const where = h("input", {
    required: true,
    value: path,
    placeholder: "plan.cursor",
    autocomplete: "off",
  });
  const text = h("textarea", { rows: 8, spellcheck: false, required: true });
  const told = h("small", { class: "muted", role: "status" });
  const fetched = async () => {
    const found = await get("part", { checkpoint: about.id, path: where.value }).catch(
      () => null,
    );
    if (found) text.value = JSON.stringify(found.value, null, 2);
    told.textContent = found
      ? ""
      : "The state has nothing there yet: the fork adds it.";
  };
  text.addEventListener("input", () => (told.textContent = problemOf(text.value)));
  return {
    element: [
      field("Value of the state (a path)", where),
      field("New value, as JSON", text),
      told,
    ],
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
