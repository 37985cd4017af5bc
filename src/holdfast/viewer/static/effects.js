// The tool calls on the line of the selected checkpoint and what became of them.

import { get } from "./api.js";
import { commandLine } from "./command.js";
import { h } from "./elements.js";
import { moment, plural } from "./figures.js";
import { fold } from "./folds.js";
import { select, settings } from "./state.js";
import { resolveDialog } from "./steer.js";
import { brief, plainText, textBlock } from "./text.js";

const STATUSES = {
  unknown: [
    "?",
    "Unknown",
    "It began and its end is not recorded. It may have happened.",
  ],
  left_behind: [
    "⤺",
    "Left behind",
    "It happened, and the state does not show it: the thread was rewound, or another fork made it.",
  ],
  failed: ["✖", "Failed", "It ended with an error."],
  repeated: [
    "↻",
    "Repeated",
    "It used the result of an equal call that was left behind.",
  ],
  happened: ["✓", "Happened", "It ended, and its result is stored."],
  undone: ["↶", "Undone", "It happened and was undone."],
};

export const effectsTab = {
  id: "effects",
  title: "Effects",
  isLive: true,
  load: ({ thread, checkpoint }, signal) =>
    get("effects", { thread, at: checkpoint }, { signal }),
  show: ({ effects }) => {
    if (!effects.length)
      return h("p", { class: "empty" }, "No tool call is recorded on this line.");
    return h(
      "div",
      {},
      Object.keys(STATUSES).map((status) => group(status, effects)),
    );
  },
};

function group(status, effects) {
  const found = effects.filter((one) => one.status === status);
  if (!found.length) return null;
  const [glyph, title, meaning] = STATUSES[status];
  return h(
    "section",
    { class: `effects is-${status}` },
    h(
      "h3",
      {},
      h("span", { class: "glyph", "aria-hidden": "true" }, glyph),
      `${title} `,
      h("span", { class: "muted" }, plural(found.length, "call")),
    ),
    h("p", { class: "muted" }, meaning),
    found.map((effect) => card(effect, glyph)),
  );
}

function card(effect, glyph) {
  const title = [
    h("span", { class: "glyph", "aria-hidden": "true" }, glyph),
    h("strong", {}, effect.tool),
    h("span", { class: "once" }, brief(effect.arguments)),
    h("span", { class: "once muted" }, outcome(effect)),
  ];
  const key = `effect:${effect.call}:${effect.attempt}:${effect.status}`;
  const element = fold(key, title, () => details(effect));
  element.dataset.anchor = key;
  return h("div", { class: "effect" }, element, actions(effect));
}

function outcome({ error, result }) {
  if (error) return `→ ${brief(error)}`;
  return result === null || result === undefined ? "" : `→ ${brief(result)}`;
}

function details({ arguments: given, result, error, call, attempt, at, commands }) {
  return [
    h("h4", {}, "Arguments"),
    textBlock(plainText(given)),
    h("h4", {}, error ? "Error" : "Result"),
    error || result !== null
      ? textBlock(plainText(error ?? result))
      : h("p", { class: "muted" }, "Nothing is recorded."),
    Object.values(commands).map(commandLine),
    h("p", { class: "muted" }, `call ${call}, attempt ${attempt}, began ${moment(at)}`),
  ];
}

function actions(effect) {
  const { checkpoint, status } = effect;
  const go = () => select(checkpoint);
  const resolvable = settings.write && status === "unknown";
  return h(
    "div",
    { class: "actions" },
    checkpoint ? quiet("Show its step", go) : null,
    resolvable ? quiet("Resolve", () => resolveDialog(effect)) : null,
  );
}

function quiet(label, act) {
  return h("button", { type: "button", class: "quiet", onclick: act }, label);
}
