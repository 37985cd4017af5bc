// The right pane: the selected checkpoint, in tabs.

import { chartsTab } from "./charts.js";
import { chatTab } from "./chat.js";
import { compareTab } from "./compare.js";
import { contextTab } from "./context.js";
import { differenceTab } from "./difference.js";
import { effectsTab } from "./effects.js";
import { fill, h } from "./elements.js";
import { filesTab } from "./filelist.js";
import { metaTab } from "./meta.js";
import { card, failure } from "./opened.js";
import { problem } from "./problem.js";
import { newestOnly } from "./request.js";
import { focusIn, keepEnd, placeIn, restore } from "./scrolling.js";
import { effect } from "./signals.js";
import {
  base,
  changed,
  checkpoint,
  message,
  pane,
  select,
  tab,
  thread,
} from "./state.js";
import { stepBar } from "./stepbar.js";
import { treeTab } from "./tree.js";

const TABS = [
  chatTab,
  treeTab,
  differenceTab,
  metaTab,
  contextTab,
  effectsTab,
  chartsTab,
  compareTab,
  filesTab,
];

export function detailPane() {
  const panel = h("div", {
    class: "detail-panel",
    id: "detail-panel",
    role: "tabpanel",
    tabIndex: 0,
  });
  keepShowing(panel);
  effect(() => void (message.value !== null && showFound()));
  effect(selectHead);
  return h(
    "section",
    { class: "detail", "aria-label": "Detail" },
    stepBar(),
    tabList(panel),
    panel,
  );
}

// A thread that is opened again is at its head.
function selectHead() {
  const isKnown = card.value !== null && card.value.id === thread.value;
  if (isKnown && checkpoint.value === null && card.value.head) select(card.value.head);
}

// A search found a message.
function showFound() {
  tab.value = "chat";
  pane.value = "detail";
}

function opened(id) {
  return TABS.find((one) => one.id === id) ?? chatTab;
}

// --- tabs -----------------------------------------------------------------------------

function tabList(panel) {
  const buttons = TABS.map(({ id, title }) =>
    h(
      "button",
      {
        type: "button",
        role: "tab",
        id: `tab-${id}`,
        "aria-controls": panel.id,
        onclick: () => (tab.value = id),
      },
      title,
    ),
  );
  effect(() => mark(buttons, panel, opened(tab.value).id));
  return h(
    "div",
    {
      class: "tabs",
      role: "tablist",
      "aria-label": "Views of the checkpoint",
      onkeydown: (event) => move(event, buttons),
    },
    buttons,
  );
}

function mark(buttons, panel, id) {
  for (const button of buttons) {
    const isOpen = button.id === `tab-${id}`;
    button.setAttribute("aria-selected", isOpen);
    button.tabIndex = isOpen ? 0 : -1;
    if (isOpen) button.scrollIntoView({ block: "nearest", inline: "nearest" });
  }
  panel.setAttribute("aria-labelledby", `tab-${id}`);
}

function move(event, buttons) {
  const at = buttons.indexOf(event.target);
  const steps = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: -1 };
  if (at < 0 || !(event.key in steps)) return;
  event.preventDefault();
  event.stopPropagation(); // the arrows of the page move the scrubber
  const next = buttons.at(steps[event.key] % buttons.length);
  next.click();
  next.focus();
}

// --- the content of the open tab ------------------------------------------------------

// The old content stays until the new one is there, so that scrubbing does not flicker.
function keepShowing(panel) {
  const latest = newestOnly();
  const places = new Map(); // tab → where the reader was in it
  let shown = null; // the tab whose content is in the panel
  const look = keepEnd(panel, () => shown?.toEnd);
  const replace = (now, ...content) => {
    if (shown) places.set(shown.id, placeIn(panel));
    const focused = focusIn(panel);
    fill(panel, content);
    focused();
    restore(
      panel,
      places.get(now.id) ?? { scrollTop: 0, atEnd: now.toEnd ?? false, anchor: null },
    );
    shown = now;
    look();
  };
  const show = async () => {
    const now = opened(tab.value);
    const wanted = {
      thread: thread.value,
      checkpoint: checkpoint.value,
      base: base.value,
    };
    if (now.isLive) changed.value; // read, so that a change of the thread loads again
    panel.setAttribute("aria-busy", "true");
    try {
      const content = await latest((signal) => loaded(now, wanted, signal));
      if (content !== undefined) replace(now, content);
    } catch (error) {
      replace(
        now,
        problem(error, () => show()),
      );
    }
    panel.removeAttribute("aria-busy");
  };
  effect(() => void show());
  effect(() => {
    thread.value;
    places.clear();
    shown = null;
  });
}

async function loaded(now, wanted, signal) {
  if (wanted.checkpoint === null) return nothing();
  const found = await now.load(wanted, signal);
  return signal.aborted ? undefined : now.show(found, wanted);
}

// A thread that was just opened gets its head selected soon; until then the old stays.
function nothing() {
  const isEmpty = card.value !== null && card.value.head === null;
  if (thread.value !== null && !isEmpty && failure.value === null) return undefined;
  const text = isEmpty
    ? "This thread has no checkpoint yet."
    : "Select a checkpoint to see it here.";
  return h("p", { class: "empty" }, text);
}
