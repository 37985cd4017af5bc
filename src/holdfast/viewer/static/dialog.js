// A dialog that changes the store: it shows its command, sends, and tells what failed.

import { ApiError, get } from "./api.js";
import { busyButton } from "./busy.js";
import { commandLine } from "./command.js";
import { fill, h } from "./elements.js";
import { changed, notify, open as openThread } from "./state.js";

const CONFLICT = 409;

// `content`: the fields. `command()`: the command line of what the fields say now.
// `send()`: sends them and gives the answer. `done(answer)`
// runs after success. `thread` is opened at its head if another change was saved first.
export function steerDialog({ title, action, content, command, send, done, thread }) {
  const trouble = h("div", { class: "trouble", role: "alert" });
  const shown = h("div", { class: "shown-command" });
  const submit = h("button", { class: "primary" }, action);
  const refresh = () => fill(shown, commandLine(command()));
  const sent = async (event) => {
    event.preventDefault();
    submit.disabled = true;
    fill(trouble);
    try {
      finish(dialog, await send(), done);
    } catch (error) {
      fill(trouble, troubleOf(error, thread, dialog));
    }
    submit.disabled = false;
  };
  const cancel = h(
    "button",
    { type: "button", onclick: () => dialog.close() },
    "Cancel",
  );
  const form = h(
    "form",
    { onsubmit: sent, oninput: refresh },
    h("h2", { id: "dialog-title" }, title),
    content,
    shown,
    trouble,
    h("div", { class: "actions" }, cancel, submit),
  );
  const dialog = h(
    "dialog",
    { class: "steer", "aria-labelledby": "dialog-title" },
    form,
  );
  dialog.addEventListener("close", () => dialog.remove());
  dialog.addEventListener("keydown", (event) => event.stopPropagation());
  refresh();
  document.body.append(dialog);
  dialog.showModal();
  return { dialog, refresh };
}

// The value that a field holds as JSON.
export function parsed(text, what) {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(
      `${what} is not JSON: ${error.message}. Texts need quotation marks.`,
    );
  }
}

function finish(dialog, answer, done) {
  dialog.close();
  changed.value += 1;
  notify(`Done: ${answer.command ?? ""}`);
  done?.(answer);
}

function troubleOf(error, thread, dialog) {
  const isConflict = error instanceof ApiError && error.status === CONFLICT;
  return [
    isConflict
      ? h("p", { class: "bad" }, "✖ Another change was saved first; nothing was changed.")
      : null,
    h("p", { class: "bad" }, isConflict ? error.message : `✖ ${error.message}`),
    error.hint ? h("p", { class: "muted" }, error.hint) : null,
    isConflict ? lookButton(thread, dialog) : null,
  ];
}

function lookButton(thread, dialog) {
  const look = async () => {
    const { head } = await get("thread", { thread });
    dialog.close();
    changed.value += 1;
    openThread(thread, head);
  };
  return busyButton("Look at the newest state", look);
}

export function field(label, input, hint = null) {
  return h(
    "label",
    { class: "field" },
    h("span", {}, label),
    input,
    hint ? h("small", { class: "muted" }, hint) : null,
  );
}
