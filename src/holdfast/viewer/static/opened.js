// The open thread: its card with its family, kept up to date.

import { get } from "./api.js";
import { lastChange, reconnects } from "./live.js";
import { newestOnly, throttled } from "./request.js";
import { batch, computed, effect, signal } from "./signals.js";
import { changed, checkpoint, follow, notify, select, thread } from "./state.js";

const LIVE_MS = 250;

export const card = signal(null); // null while it is loaded
export const failure = signal(null); // why it cannot be shown

const family = computed(() => new Set((card.value?.family ?? []).map(({ id }) => id)));
const latest = newestOnly();
let told = 0; // the value of `changed` that was set here

export function watch() {
  effect(() => {
    card.value = null;
    failure.value = null;
    if (thread.value !== null) loadCard();
  });
  const reload = throttled(LIVE_MS, loadCard);
  effect(() => {
    const change = lastChange.value;
    if (change && thread.peek() !== null && concerns(change)) reload();
  });
  effect(() => void (reconnects.value && thread.peek() !== null && reload()));
  // A dialog changed the store.
  effect(() => void (changed.value !== told && loadCard()));
}

// A new fork is not yet a member of the family that is known here.
function concerns(change) {
  return family.peek().has(change.thread) || change.kind === "fork";
}

export async function loadCard() {
  const id = thread.peek();
  const isFirst = card.peek() === null;
  try {
    const found = await latest(async (abort) => {
      const opened = await get("thread", { thread: id }, { signal: abort });
      return { opened, isForeign: isFirst && (await isForeign(opened, abort)) };
    });
    if (found !== undefined) show(found, isFirst);
  } catch (error) {
    failure.value = error;
  }
}

function show({ opened, isForeign: wrong }, isFirst) {
  const id = checkpoint.peek();
  if (wrong) notify(`Checkpoint ${id} is not in this thread; this is its newest one.`);
  batch(() => {
    failure.value = null;
    card.value = opened;
    if (!isFirst) changed.value = told = changed.peek() + 1;
    if (wrong || id === null || (follow.peek() && !isFirst)) select(opened.head);
  });
}

// A link may name a checkpoint of another thread, or one that was removed since.
async function isForeign(opened, abort) {
  const id = checkpoint.peek();
  if (id === null || id === opened.head) return false;
  try {
    const row = await get("checkpoint", { id }, { signal: abort });
    return !opened.family.some((member) => member.id === row.thread);
  } catch (error) {
    if (error.status === 404) return true;
    throw error;
  }
}
