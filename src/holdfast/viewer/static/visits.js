// Jumps, and the way back to where the reader was before them.

import { batch, computed, signal } from "./signals.js";
import { base, checkpoint, follow, open, thread } from "./state.js";

const MOST = 50;
const visits = signal([]);

export const canGoBack = computed(() => visits.value.length > 0);

// Does what moves the selection far away, and keeps the place before it.
export function jump(move) {
  const here = { thread: thread.peek(), checkpoint: checkpoint.peek(), base: base.peek() };
  batch(() => {
    if (here.checkpoint !== null) visits.value = [...visits.value, here].slice(-MOST);
    move();
  });
}

export function goBack() {
  const last = visits.peek().at(-1);
  if (last === undefined) return;
  batch(() => {
    visits.value = visits.peek().slice(0, -1);
    follow.value = false;
    open(last.thread, last.checkpoint);
    base.value = last.base;
  });
}
