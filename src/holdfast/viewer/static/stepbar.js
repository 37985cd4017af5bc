// The head of the detail pane: which step is selected and what can be done with it.

import { linkTo } from "./address.js";
import { exported, get, stream } from "./api.js";
import { busyButton } from "./busy.js";
import { copy } from "./command.js";
import { fill, h } from "./elements.js";
import { cost, count, moment } from "./figures.js";
import { forkDialog } from "./fork.js";
import { card } from "./opened.js";
import { newestOnly } from "./request.js";
import { effect, signal } from "./signals.js";
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

// The buttons stay the same elements, so that a live change takes no focus away.
export function stepBar() {
  const about = signal(null); // the document of the selected checkpoint
  const trouble = signal("");
  const title = h("div", { class: "step-title" });
  keepLoading(about, trouble);
  effect(() => void fill(title, titleOrTrouble(about.value, trouble.value)));
  return h(
    "header",
    { class: "step-bar" },
    title,
    h("div", { class: "actions" }, buttonsFor(about)),
  );
}

function keepLoading(about, trouble) {
  const latest = newestOnly();
  const load = async (id) => {
    try {
      const found = await latest((signal) => get("checkpoint", { id }, { signal }));
      if (found !== undefined) about.value = found;
    } catch (error) {
      trouble.value = error.message;
      about.value = null;
    }
  };
  effect(() => {
    const id = checkpoint.value;
    changed.value; // read: labels, tags and heads change
    if (id !== null) load(id);
    else if (thread.value === null || card.value?.head === null) about.value = null;
  });
}

function titleOrTrouble(about, trouble) {
  return about ? titleOf(about) : h("h2", {}, trouble || "No checkpoint selected");
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
      about.error ? h("span", { class: "bad" }, "✖ failed ") : null,
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

function buttonsFor(about) {
  const button = (name, command, act) => commandButton(about, name, command, act);
  const steering = () => [
    button("Fork", "fork", (one) => forkDialog(one)),
    button("Edit and fork", "fork", (one) => forkDialog(one, { edit: true })),
    button("Label", "label", (one) => labelDialog(one)),
    button("Tag", "tag", (one) => tagDialog(one)),
    button("Rewind", "rewind", (one) => rewindDialog(one, thread.value)),
  ];
  return [
    baseButton(about),
    settings.write && !exported ? steering() : null,
    button("Copy link", "show", ({ id }) => copy(linkTo(id), "link")),
    exported ? null : button("Export", "export", () => download(thread.value)),
  ];
}

// Each button has its command in its tip; the dialog shows it in full.
function commandButton(about, name, command, act) {
  const button = busyButton(name, () => act(about.value), { class: "quiet" });
  effect(() => {
    button.disabled = about.value === null;
    button.title = about.value?.commands?.[command] ?? name;
  });
  return button;
}

function baseButton(about) {
  const isBase = () => about.value !== null && base.value === about.value.id;
  const button = h(
    "button",
    {
      type: "button",
      class: "quiet",
      title: "Differences and comparisons start from the base",
      onclick: () => setBase(isBase() ? null : about.value.id),
    },
    "◆ Base",
  );
  effect(() => {
    button.disabled = about.value === null;
    button.setAttribute("aria-pressed", isBase());
  });
  return button;
}

async function download(id) {
  const file = await new Response(await stream("export", { thread: id })).blob();
  const url = URL.createObjectURL(file);
  const name = `${id.replace(/[^\w.-]+/g, "-")}.html`;
  h("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
  notify(`Saved ${name}.`);
}
