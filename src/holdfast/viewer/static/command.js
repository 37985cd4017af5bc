// Commands and other texts to copy: each button of the viewer has its command line.

import { h } from "./elements.js";
import { notify } from "./state.js";

// Where the page may not use the clipboard, the text is shown to be copied by hand.
export async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
    notify(`Copied ${what}.`);
  } catch {
    notify(`Copy this ${what}: ${text}`);
  }
}

export function copyButton(text, what) {
  return h(
    "button",
    {
      type: "button",
      class: "quiet copy",
      title: `Copy ${what}: ${text}`,
      "aria-label": `Copy ${what}`,
      onclick: () => copy(text, what),
    },
    "⧉",
  );
}

// A command line in full, with a button that copies it.
export function commandLine(text) {
  return h(
    "div",
    { class: "command" },
    h("code", { tabIndex: 0 }, text),
    copyButton(text, "command"),
  );
}

// An argument as a POSIX shell reads it back.
export function quoted(argument) {
  const text = String(argument);
  if (/^[\w@%+=:,./-]+$/.test(text)) return text;
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
