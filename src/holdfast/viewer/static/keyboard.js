// The keys of the page, and the dialog that lists them.

import { h } from "./elements.js";
import { step, toEnd, toggleFollow } from "./scrubber.js";
import { base, checkpoint, open, pane, setBase, tab } from "./state.js";
import { turnTheme } from "./themes.js";
import { goBack } from "./visits.js";

const TABS = [
  "chat",
  "state",
  "diff",
  "meta",
  "context",
  "effects",
  "charts",
  "compare",
  "files",
];

const KEYS = [
  ["/", "search", () => focus("threads", "#search")],
  ["t", "threads", () => focus("threads", "#threads")],
  ["g", "history", () => focus("graph", "#graph")],
  ["d", "detail", () => focus("detail", "#detail-panel")],
  ["←", "one step back", () => step(-1), "ArrowLeft"],
  ["→", "one step forward", () => step(1), "ArrowRight"],
  ["Home", "first step", () => toEnd(0)],
  ["End", "last step", () => toEnd(1)],
  ["b", "compare from here, or no longer", toggleBase],
  ["f", "follow live", toggleFollow],
  ["u", "back to where you were", goBack],
  ["a", "all threads", closeThread],
  ["1 to 9", "tabs of the detail", null],
  ["l", "light, dark or as the system", turnTheme],
  ["?", "these keys", showKeys],
];
const BY_KEY = new Map(KEYS.map(([key, , act, code]) => [code ?? key, act]));
TABS.forEach((name, at) => BY_KEY.set(String(at + 1), () => (tab.value = name)));

export function watchKeys() {
  addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape" && event.target.id === "search") return event.target.blur();
    const act = BY_KEY.get(event.key);
    if (!act || isTyping(event) || document.querySelector("dialog[open]")) return;
    event.preventDefault();
    act();
  });
}

export function showKeys() {
  const dialog = h(
    "dialog",
    { class: "keys", "aria-labelledby": "keys-title" },
    h("h2", { id: "keys-title" }, "Keys"),
    h("dl", {}, KEYS.map(([key, what]) => h("div", {}, h("dt", {}, h("kbd", {}, key)), h("dd", {}, what)))),
    h("p", { class: "muted" }, "In a list: ↑ ↓ move, Enter opens."),
    h("form", { method: "dialog" }, h("button", {}, "Close")),
  );
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

// The slider has arrows of its own, which do the same.
function isTyping({ target, key }) {
  if (target.matches("textarea, select, input:not([type=range])")) return true;
  return target.matches("input") && /^(Arrow|Home|End)/.test(key);
}

function focus(name, selector) {
  pane.value = name;
  document.querySelector(selector)?.focus();
}

function toggleBase() {
  setBase(base.peek() === checkpoint.peek() ? null : checkpoint.peek());
}

export function closeThread() {
  open(null);
  pane.value = "threads";
}
