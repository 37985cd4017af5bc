// The threads pane: what is going on in the store, newest first; or what a search finds.

import { exported, get } from "./api.js";
import { hitCard, STATES, threadCard } from "./cards.js";
import { fill, h } from "./elements.js";
import { lastChange, reconnects } from "./live.js";
import { problem } from "./problem.js";
import { newestOnly, throttled } from "./request.js";
import { virtualRows } from "./rows.js";
import { effect } from "./signals.js";
import { checkpoint, message as position, open, thread } from "./state.js";
import { jump } from "./visits.js";

const PAGE = 50;
const WIDE = 50; // rem: from here on a thread is a line of a table
const TYPING_MS = 180;
const LIVE_MS = 400;

export function threadsPane() {
  const filters = filterForm();
  const message = h("div", { class: "pane-message", "aria-live": "polite" });
  const latest = newestOnly();
  let entries = []; // { card } or { hit }
  let next = null;
  let loading = false;

  const isOpen = ({ card, hit }) =>
    card
      ? card.id === thread.peek()
      : hit.checkpoint === checkpoint.peek() && hit.position === position.peek();

  const list = virtualRows({
    label: "Threads",
    rowHeight: (width) => (width >= WIDE ? 3.25 : 4.5),
    render: (index) => {
      const entry = entries[index];
      return entry.card ? threadCard(entry.card, isOpen(entry)) : hitCard(entry.hit, isOpen(entry));
    },
    chosen: (index) => {
      const { card, hit } = entries[index];
      if (card) open(card.id);
      else jump(() => open(hit.thread, hit.checkpoint, hit.position));
    },
    seen: (first, last) => last >= entries.length - 5 && more(),
  });
  list.element.id = "threads";

  const show = () => {
    list.refresh(entries.length);
    fill(message, entries.length === 0 ? emptyText(filters) : null);
  };

  const load = async () => {
    try {
      const found = await latest((signal) => firstPage(filters.values(), entries.length, signal));
      if (found === undefined) return;
      ({ entries, next } = found);
      show();
    } catch (error) {
      entries = [];
      list.refresh(0);
      fill(message, problem(error, load));
    }
  };

  const more = async () => {
    if (next === null || loading) return;
    loading = true;
    try {
      const { question, cursor } = next;
      const page = await latest((signal) => question(cursor, signal));
      if (page === undefined) return;
      entries = [...entries, ...page.entries];
      next = page.next === null ? null : { question, cursor: page.next };
      list.refresh(entries.length);
    } catch (error) {
      fill(message, problem(error, more));
    } finally {
      loading = false;
    }
  };

  const live = throttled(LIVE_MS, () => filters.values().q || load());
  effect(() => void (lastChange.value && live()));
  effect(() => void (reconnects.value && live()));
  effect(() => {
    thread.value, checkpoint.value, position.value;
    list.refresh(entries.length);
  });
  filters.element.addEventListener("change", load);
  load();

  return h(
    "section",
    { class: "pane threads", "aria-label": "Threads" },
    filters.element,
    columns(),
    list.element,
    message,
  );
}

// As many rows as there were, so that a change does not throw the reader back.
async function firstPage(values, before, signal) {
  const limit = Math.min(500, Math.max(PAGE, before));
  if (values.q) return found(values, signal);
  const question = async (cursor, signal_, size = PAGE) => {
    const page = await get("threads", { ...values, limit: size, cursor }, { signal: signal_ });
    return { entries: page.threads.map((card) => ({ card })), next: page.next };
  };
  const { entries, next } = await question(null, signal, limit);
  return { entries, next: next === null ? null : { question, cursor: next } };
}

// Threads whose names begin with the words, then messages that hold them.
async function found({ q, ...values }, signal) {
  const question = async (cursor, signal_) => {
    const page = await get("search", { q, limit: PAGE, cursor }, { signal: signal_ });
    return { entries: page.hits.map((hit) => ({ hit })), next: page.next };
  };
  const [names, hits] = await Promise.all([
    get("threads", { ...values, prefix: q, limit: 5 }, { signal }),
    question(null, signal),
  ]);
  return {
    entries: [...names.threads.map((card) => ({ card })), ...hits.entries],
    next: hits.next === null ? null : { question, cursor: hits.next },
  };
}

function filterForm() {
  const search = h("input", {
    type: "search",
    id: "search",
    placeholder: "Search messages and threads",
    "aria-label": "Search messages and threads",
    "aria-keyshortcuts": "/",
    autocomplete: "off",
    spellcheck: false,
  });
  const state = h(
    "select",
    { "aria-label": "State" },
    h("option", { value: "" }, "any state"),
    STATES.map((word) => h("option", { value: word }, word)),
  );
  const agent = h("input", { placeholder: "agent", "aria-label": "Agent", autocomplete: "off" });
  const owner = h("input", { placeholder: "owner", "aria-label": "Owner", autocomplete: "off" });
  const element = h(
    "form",
    { class: "filters", role: "search", hidden: exported, onsubmit: (event) => event.preventDefault() },
    search,
    h("div", { class: "filters-more" }, state, agent, owner),
  );
  let timer = 0;
  element.addEventListener("input", (event) => {
    event.stopPropagation();
    clearTimeout(timer);
    timer = setTimeout(() => element.dispatchEvent(new Event("change")), TYPING_MS);
  });
  // A field that loses the focus tells once more what was typed. A load would then replace
  // the rows between the press and the release of the click that took the focus.
  element.addEventListener(
    "change",
    (event) => event.target !== element && event.stopImmediatePropagation(),
  );
  const values = () => ({
    q: search.value.trim(),
    state: state.value,
    agent: agent.value.trim(),
    owner: owner.value.trim(),
  });
  return { element, values };
}

function emptyText(filters) {
  const asked = Object.values(filters.values()).some(Boolean);
  if (asked) return h("p", { class: "muted" }, "Nothing found.");
  return h("p", { class: "muted" }, "This store has no threads yet. They appear here as they are saved.");
}

function columns() {
  const names = ["state", "thread", "who", "steps", "tokens", "cost", "size", "forks", "changed"];
  return h(
    "div",
    { class: "columns muted", "aria-hidden": "true" },
    names.map((name) => h("span", { class: `column-${name}` }, name)),
  );
}
