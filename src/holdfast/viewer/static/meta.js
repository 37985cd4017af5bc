// What a checkpoint is: its ids, its place in the history, its size, its commands.

import { get } from "./api.js";
import { commandLine, copyButton } from "./command.js";
import { h } from "./elements.js";
import { bytes, cost, count, duration, moment } from "./figures.js";
import { open as openThread, select } from "./state.js";
import { valueBlock } from "./text.js";

export const metaTab = {
  id: "meta",
  title: "Meta",
  isLive: true, // labels, tags and children change
  load: ({ checkpoint }, signal) => get("checkpoint", { id: checkpoint }, { signal }),
  show: (about) =>
    h(
      "div",
      {},
      h("dl", { class: "facts" }, facts(about).map(fact)),
      section("Metadata", about.metadata, valueBlock),
      section("Usage", about.usage, valueBlock),
      commands(about.commands ?? {}),
    ),
};

function facts(about) {
  return [
    ["Changed", about.changed],
    ["Checkpoint", copied(about.id, "id")],
    ["Thread", copied(about.thread, "thread")],
    ["Step", count(about.step)],
    ["Kind", about.kind],
    ["Saved", moment(about.at)],
    ["Label", about.label],
    ["Tags", (about.tags ?? []).join(", ")],
    [
      "Parent",
      about.parent
        ? link(about.parent, () => select(about.parent))
        : "none: the first checkpoint",
    ],
    ["Children", children(about)],
    ["Forked from", about.lineage.map(origin)],
    ["Tokens", about.tokens ? count(about.tokens) : null],
    ["Cost", about.cost ? cost(about.cost) : null],
    ["Took", about.took_ms ? duration(about.took_ms) : null],
    ["Size", sizes(about)],
    ["Digest", copied(about.digest, "digest")],
    ["Trace", about.traceparent ? copied(about.traceparent, "trace") : null],
  ];
}

function fact([name, value]) {
  const isNothing =
    value === null || value === undefined || value === "" || value.length === 0;
  return isNothing ? null : h("div", {}, h("dt", {}, name), h("dd", {}, value));
}

function copied(text, what) {
  return text ? [h("code", {}, text), copyButton(text, what)] : null;
}

// The server looks at the next checkpoints only.
function children({ children: found, children_complete: isAll }) {
  const more = h("div", { class: "muted" }, "and any that were saved much later, after a rewind");
  return [...found.map(child), ...(isAll ? [] : [more])];
}

function child({ id, step, thread }) {
  return h(
    "div",
    {},
    link(`step ${step} of ${thread}`, () => select(id)),
  );
}

// Where the thread was forked off, from the nearest fork to the first.
function origin({ thread, checkpoint, step }) {
  const at = step === null ? "a checkpoint that was removed" : `step ${step}`;
  return h(
    "div",
    {},
    link(`${thread} at ${at}`, () => openThread(thread, checkpoint)),
  );
}

function link(name, go) {
  return h("button", { type: "button", class: "link", onclick: go }, name);
}

function sizes({ size, stored }) {
  if (stored === undefined || stored === null) return bytes(size ?? 0);
  const ratio = stored > 0 ? ` (${(size / stored).toFixed(1)} ×)` : "";
  return `${bytes(size)} → ${bytes(stored)} stored${ratio}`;
}

function section(title, value, show) {
  const isEmpty = !value || Object.keys(value).length === 0;
  return isEmpty ? null : h("section", {}, h("h3", {}, title), show(value));
}

function commands(found) {
  const lines = Object.values(found).map(commandLine);
  return lines.length ? h("section", {}, h("h3", {}, "Commands"), lines) : null;
}
