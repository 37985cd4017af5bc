// The address of the page is what it shows: ?t= thread, c= checkpoint, base=, tab=.

import { exported } from "./api.js";
import { batch, effect } from "./signals.js";
import { base, checkpoint, open, pane, tab, thread } from "./state.js";

const WAIT_MS = 150; // browsers refuse hundreds of changes of the address in a row
const TAB = "chat";

export function readAddress() {
  const params = new URLSearchParams(location.search);
  batch(() => {
    const id = params.get("t");
    if (id !== null) open(id, params.get("c"));
    else {
      thread.value = null;
      checkpoint.value = null;
      pane.value = "threads";
    }
    base.value = params.get("base");
    tab.value = params.get("tab") ?? TAB;
  });
}

export function watchAddress() {
  if (exported) return;
  let timer = 0;
  let shown = thread.peek();
  effect(() => {
    const search = query();
    clearTimeout(timer);
    timer = setTimeout(() => {
      const isOther = thread.peek() !== shown;
      shown = thread.peek();
      write(search, isOther);
    }, WAIT_MS);
  });
  effect(() => void (document.title = thread.value ? `${thread.value} · Holdfast` : "Holdfast"));
  addEventListener("popstate", () => {
    readAddress();
    shown = thread.peek();
  });
}

// Another thread is a new entry in the browser's history, another step is not.
function write(search, isOther) {
  if (search === location.search) return;
  const url = location.pathname + search;
  if (isOther) history.pushState(null, "", url);
  else history.replaceState(null, "", url);
}

// What is shown now, at this checkpoint. The address of the page comes a moment later.
export function linkTo(id) {
  const address = new URL(location.href);
  address.search = query();
  address.searchParams.set("c", id);
  address.hash = "";
  return address.href;
}

function query() {
  const params = new URLSearchParams();
  const pairs = [["t", thread.value], ["c", checkpoint.value], ["base", base.value]];
  for (const [name, value] of pairs) if (value !== null) params.set(name, value);
  if (tab.value !== TAB) params.set("tab", tab.value);
  const text = params.toString();
  return text && `?${text}`;
}
