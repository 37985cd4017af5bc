// The head of the detail pane: which step is selected and what can be done with it.

import { exported, get, stream } from "./api.js";
import { busyButton } from "./busy.js";
import { copy } from "./command.js";
import { fill, h } from "./elements.js";
import { cost, count, moment } from "./figures.js";
import { forkDialog } from "./fork.js";
import { newestOnly } from "./request.js";
import { effect } from "./signals.js";
import {
  base,
  changed,
  checkpoint,
  notify,
  setBase,
  settings,
  thread,
} from "./state.js";
import { labelDialog, rewindDialog, tagDialog } from "./steer.js";

export function stepBar() {
  const title = h("div", { class: "step-title" });
  const actions = h("div", { class: "actions" });
  const latest = newestOnly();
  effect(() => {
    const id = checkpoint.value;
    changed.value; // read: labels, tags and heads change
    base.value; // read: the button of the base shows whether it is this one
    show(latest, id, title, actions);
  });
  return h("header", { class: "step-bar" }, title, actions);
}

async function show(latest, id, title, actions) {
  if (id === null) return clear(title, actions, "No checkpoint selected");
  try {
    const about = await latest((signal) => get("checkpoint", { id }, { signal }));
    if (about === undefined) return;
    fill(title, titleOf(about));
    fill(actions, buttonsOf(about));
  } catch (error) {
    clear(title, actions, error.message);
  }
}

function clear(title, actions, text) {
  fill(title, h("h2", {}, text));
  fill(actions);
}

function titleOf(about) {
  const facts = [
    about.tokens ? `${count(about.tokens)} tok` : "",
    about.cost ? cost(about.cost) : "",
    moment(about.at),
  ];
  return [
    h(
      "h2",
      {},
      about.error ? h("span", { class: "bad", "aria-label": "failed" }, "✖ ") : null,
      `Step ${count(about.step)}`,
      h("span", { class: "muted" }, ` ${about.kind}`),
    ),
    about.label ? h("span", { class: "chip label" }, about.label) : null,
    (about.tags ?? []).map((name) => h("span", { class: "chip" }, `#${name}`)),
    h("span", { class: "muted end" }, facts.filter(Boolean).join(" · ")),
    about.changed
      ? h("p", { class: "muted changed" }, `changed: ${about.changed}`)
      : null,
  ];
}

// --- what can be done -----------------------------------------------------------------

function buttonsOf(about) {
  const { commands = {} } = about;
  const steering = [
    button("Fork", commands.fork, () => forkDialog(about)),
    button("Edit and fork", commands.fork, () => forkDialog(about, { edit: true })),
    button("Label", commands.label, () => labelDialog(about)),
    button("Tag", commands.tag, () => tagDialog(about)),
    button("Rewind", commands.rewind, () => rewindDialog(about, thread.value)),
  ];
  return [
    baseButton(about),
    settings.write && !exported ? steering : null,
    button("Copy link", "", () => copy(permalink(about.id), "link")),
    exported ? null : button("Export", commands.export, () => download(thread.value)),
  ];
}

// Each button has its command in its tip; the dialog shows it in full.
function button(name, command, act) {
  return busyButton(name, act, { class: "quiet", title: command || name });
}

function baseButton({ id }) {
  const isBase = base.value === id;
  return h(
    "button",
    {
      type: "button",
      class: "quiet",
      "aria-pressed": String(isBase),
      title: "Differences and comparisons start from the base",
      onclick: () => setBase(isBase ? null : id),
    },
    "◆ Base",
  );
}

function permalink(id) {
  const address = new URL(location.href);
  address.searchParams.set("t", thread.value);
  address.searchParams.set("c", id);
  address.hash = "";
  return address.href;
}

async function download(id) {
  const file = await new Response(await stream("export", { thread: id })).blob();
  const url = URL.createObjectURL(file);
  const name = `${id.replace(/[^\w.-]+/g, "-")}.html`;
  h("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
  notify(`Saved ${name}.`);
}
