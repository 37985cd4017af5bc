// Commands and other texts to copy: each button of the viewer has its command line.

import { h, svg } from "./elements.js";
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
    sheets(),
  );
}

// Two sheets of paper. Few fonts have a character for it.
function sheets() {
  const pen = { fill: "none", stroke: "currentColor", "stroke-width": 1.2 };
  return svg(
    "svg",
    { viewBox: "0 0 12 12", "aria-hidden": "true" },
    svg("path", { ...pen, d: "M8.5 3.5v-3h-8v8h3" }),
    svg("path", { ...pen, d: "M3.5 3.5h8v8h-8z" }),
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

// A command line of Holdfast, as a POSIX shell reads it back.
export function shellLine(...words) {
  return ["holdfast", ...words.map(quoted)].join(" ");
}

function quoted(word) {
  const text = String(word);
  if (/^[\w@%+=:,./-]+$/.test(text)) return text;
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
