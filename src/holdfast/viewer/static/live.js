// Changes of the store, as the server tells them. EventSource cannot send a token, so
// the stream of events is read with fetch.

import { exported, stream } from "./api.js";
import { signal } from "./signals.js";

const LONGEST_PAUSE_MS = 15_000;

export const connection = signal(exported ? "exported" : "connecting"); // then "live", "lost", "unreadable"
export const reconnects = signal(0); // changes may have been missed before each
export const lastChange = signal(null); // { thread, kind, checkpoint, at, seq }

// Goes on until the page is closed; after a break from the last event that was read.
export async function listen() {
  if (exported) return;
  let after = null;
  for (let failures = 0; ; failures += 1) {
    try {
      for await (const event of events(await stream("live", { after }))) {
        failures = 0;
        after = event.id ?? after;
        take(event);
      }
    } catch (error) {
      if (error.status === 401) return void (connection.value = "lost");
    }
    connection.value = "lost";
    await pause(Math.min(LONGEST_PAUSE_MS, 250 * 2 ** failures));
  }
}

// The server also says that it is alive, and that it cannot read the store.
function take(event) {
  if (event.event === "problem") return void (connection.value = "unreadable");
  const wasLost = connection.peek() === "lost" || connection.peek() === "unreadable";
  connection.value = "live";
  if (event.event === "change") lastChange.value = { ...JSON.parse(event.data), id: event.id };
  if (wasLost) reconnects.value += 1;
}

function pause(milliseconds) {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}

async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const blocks = (rest + value.replaceAll("\r\n", "\n")).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) yield parsed(block);
  }
}

// The fields of one event; a comment has none.
function parsed(block) {
  const fields = {};
  for (const line of block.split("\n")) {
    const [, name, value] = /^([a-z]+): ?(.*)$/.exec(line) ?? [];
    if (name) fields[name] = value;
  }
  return fields;
}
