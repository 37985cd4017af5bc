// What the viewer shows, as signals: every pane reads them, and the address of the page
// is made of them.

import { batch, signal } from "./signals.js";

const page = document.documentElement.dataset;

// What the server says on the page: the prefix of all addresses, whether changes are
// allowed, the version of Holdfast.
export const settings = {
  base: page.base ?? "/",
  write: page.write === "true",
  version: page.version ?? "",
};

export const thread = signal(null); // the id of the open thread
export const checkpoint = signal(null); // the id of the selected checkpoint
export const base = signal(null); // the id of the checkpoint ◆ to compare with
export const tab = signal("chat"); // the open tab of the detail pane
export const place = signal(null); // the row of the selected checkpoint in the log
export const follow = signal(false); // whether the newest checkpoint is selected as it comes
export const changed = signal(0); // counts the changes of the open thread
export const message = signal(null); // the position of the message that a search found
export const pane = signal("threads"); // the pane that a narrow window shows
export const status = signal(null); // the last notice: { text, at }

// Selects a checkpoint of the open thread. The caller may know its row already.
export function select(id, row = null) {
  batch(() => {
    checkpoint.value = id;
    message.value = null;
    if (row !== null || place.peek()?.id !== id) place.value = row;
  });
}

// Opens a thread, at a checkpoint or at its head; `position` is that of a message in it.
export function open(id, at = null, position = null) {
  batch(() => {
    if (thread.peek() !== id) {
      base.value = null;
      place.value = null;
      follow.value = false;
    }
    thread.value = id;
    select(at);
    message.value = position;
    if (pane.peek() === "threads") pane.value = "graph";
  });
}

// The checkpoint that the difference is taken from; null: the parent of the selected one.
export function setBase(id) {
  base.value = id;
}

// Says a sentence in the status line, also to screen readers.
export function notify(text) {
  status.value = { text, at: Date.now() };
}
