// The scrubber: the path from the root to the tip, through the selected checkpoint.

import { exported } from "./api.js";
import { fill, h, svg } from "./elements.js";
import { compact, cost, count } from "./figures.js";
import { Line } from "./line.js";
import { card } from "./opened.js";
import { newestOnly } from "./request.js";
import { batch, effect, signal } from "./signals.js";
import { changed, checkpoint, follow, notify, place, select, thread } from "./state.js";
import { strip } from "./strip.js";
import { clock } from "./times.js";
import { canGoBack, goBack, jump } from "./visits.js";

const line = signal(null);
const position = signal(-1);
const blocks = signal(0); // counts the blocks of the line that were loaded
const latestLine = newestOnly();
const latestItem = newestOnly();
let waiting = []; // moves that were asked for before the line was there

export function scrubber() {
  const range = h("input", {
    type: "range",
    min: 0,
    step: 1,
    "aria-label": "Step",
    oninput: () => goTo(range.valueAsNumber),
  });
  const bars = strip();
  const text = h("output", { class: "scrubber-text" });
  effect(() => {
    blocks.value;
    const length = line.value?.length ?? 0;
    range.max = Math.max(0, length - 1);
    range.valueAsNumber = Math.max(0, position.value);
    range.disabled = length === 0;
    range.setAttribute("aria-valuetext", said());
    fill(text, said());
    if (line.value) bars.show(line.value, position.value);
  });
  effect(() => {
    thread.value;
    waiting = [];
  });
  effect(() => {
    checkpoint.value, place.value, changed.value;
    if (card.value !== null) findLine().catch((error) => ((waiting = []), notify(error.message)));
    else batch(() => ((line.value = null), (position.value = -1)));
  });
  return h(
    "section",
    { class: "scrubber", "aria-label": "Time travel" },
    move("M4 3v10M13 3L7 8l6 5z", "First step", () => toEnd(0)),
    move("M11 3L5 8l6 5z", "Step back", () => step(-1)),
    h("div", { class: "track" }, bars.element, range),
    move("M5 3l6 5-6 5z", "Step forward", () => step(1)),
    move("M12 3v10M3 3l6 5-6 5z", "Last step", () => toEnd(1)),
    text,
    followButton(),
    backButton(),
  );
}

// --- moving ---------------------------------------------------------------------------

export function step(by) {
  whenKnown(() => {
    const at = position.peek() + by;
    if (at >= 0 && at < line.peek().length) goTo(at);
  });
}

export function toEnd(which) {
  whenKnown(() => jump(() => goTo(which * (line.peek().length - 1))));
}

// Keys come faster than a line is loaded.
function whenKnown(move) {
  if (position.peek() >= 0) move();
  else if (thread.peek() !== null) waiting.push(move);
}

export function toggleFollow() {
  const head = card.peek()?.head;
  if (follow.peek() || !head) follow.value = false;
  else jump(() => ((follow.value = true), select(head)));
}

// The slider moves at once; the checkpoint follows when its block is loaded.
async function goTo(at) {
  position.value = at;
  if (at !== line.peek().length - 1) follow.value = false;
  const now = line.peek();
  const known = now.items[at];
  if (known) return select(known.id);
  const item = await latestItem((abort) => now.at(at, abort)).catch((error) => notify(error.message));
  blocks.value += 1;
  if (item && line.peek() === now) select(item.id);
}

// --- which line -----------------------------------------------------------------------

// Keeps the line while the selected checkpoint is on it. Else: the open thread's line,
// the line of the thread that saved the checkpoint, or what leads to the checkpoint.
async function findLine() {
  const [id, row, opened] = [checkpoint.peek(), place.peek(), card.peek()];
  const version = `${opened.id} ${opened.head} ${changed.peek()}`;
  const known = line.peek()?.version === version ? line.peek().positionOf(id) : -1;
  if (known >= 0) return void (position.value = known);
  if (id === null || row?.id !== id) return;
  const found = await latestLine((abort) => lineThrough(id, row, opened, abort));
  if (found === undefined) return;
  if (found === null) return void ((waiting = []), (position.value = -1));
  found.version = version;
  batch(() => ((line.value = found), (position.value = found.positionOf(id))));
  for (const move of waiting.splice(0)) move();
}

async function lineThrough(id, row, opened, abort) {
  const candidates = [[opened.id], [row.thread], [opened.id, id]];
  for (const [name, tip] of candidates.filter(([name]) => name)) {
    const tried = new Line(name, tip);
    const at = await tried.find(id, row.step, abort).catch(missing);
    if (at >= 0) return tried;
  }
  return null;
}

// The thread that saved a checkpoint may be deleted.
function missing(error) {
  if (error.status === 404) return -1;
  throw error;
}

// --- what it says ---------------------------------------------------------------------

function said() {
  const at = position.value;
  if (!line.value || at < 0) return "";
  const item = line.value.items[at];
  const place = `${count(at + 1)} of ${count(line.value.length)}`;
  return [place, ...(item ? about(item) : [])].join(" · ");
}

function about({ kind, at, tokens, cost: spent }) {
  const told = [kind ?? "", clock(at)];
  if (tokens) told.push(`${compact(tokens)} tok`);
  if (spent) told.push(cost(spent));
  return told;
}

function move(d, name, onclick) {
  const icon = svg("svg", { class: "icon", viewBox: "0 0 16 16", "aria-hidden": "true" }, svg("path", { d }));
  return h("button", { type: "button", class: "quiet", title: name, "aria-label": name, onclick }, icon);
}

function followButton() {
  const button = h(
    "button",
    { type: "button", title: "Select each new checkpoint as it comes", onclick: toggleFollow },
    "Follow live",
  );
  effect(() => button.setAttribute("aria-pressed", follow.value));
  effect(() => void (button.disabled = thread.value === null));
  button.hidden = exported;
  return button;
}

function backButton() {
  const button = h("button", { type: "button", title: "Back to where you were", onclick: goBack }, "↩ Back");
  effect(() => void (button.disabled = !canGoBack.value));
  return button;
}
