// The rows of a thread's log, newest first. Pages are loaded as they are needed, from
// the top or from any place in the middle; a row is found by its index or by its id.

import { exported, get } from "./api.js";
import { newestOnly } from "./request.js";
import { signal } from "./signals.js";

const PAGE = 200;
const BUCKETS = 2000;
const MOST_ROWS = 8000;
const NEAR = 5 * PAGE; // rows that are read on to rather than jumped to
const GUESSES = 8;
const REST = 10; // a minimap is asked for in at most one tenth of the time
const MOST_PAGES = 50; // that are read to find a row of a log that cannot be counted

export class Log {
  total = 0;
  buckets = [];
  version = signal(0); // counts what was loaded
  grown = 0; // how many rows came on top while the log was shown
  #thread;
  #scope;
  #steps;
  #latest = newestOnly();
  #rows = new Map(); // index → row
  #indexes = new Map(); // id → index
  #minimapRests = 0; // until this time
  #cursors = new Map(); // index → the cursor of the page that begins there

  // `steps`: how long the thread's own line is.
  constructor(thread, scope, steps) {
    this.#thread = thread;
    this.#scope = scope;
    this.#steps = steps;
  }

  row(index) {
    return this.#rows.get(index);
  }

  // -1 if no row with this id is loaded.
  indexOf(id) {
    return this.#indexes.get(id) ?? -1;
  }

  // The indexes of the rows that are loaded, in order.
  loaded() {
    return [...this.#rows.keys()].sort((one, other) => one - other);
  }

  get complete() {
    return this.#rows.size === this.total;
  }

  // Begins, or begins again after a change: lanes of old rows may have changed with it.
  async load(signal) {
    const page = await this.#ask({}, signal);
    const isShown = this.version.peek() > 0 && page.total !== null;
    if (isShown) this.grown += page.total - this.total;
    this.#clear();
    this.#place(page, 0);
    this.version.value += 1;
    if (this.#scope === "family") this.#loadMinimap();
  }

  // Loads what is missing of these rows.
  async ensure(first, last) {
    for (let index = first; index <= last; index += 1) {
      if (this.row(index)) continue;
      await this.#latest((signal) => this.#fetch(index, signal));
      return;
    }
  }

  // Loads the page that has this checkpoint; gives its index.
  async find(id, signal) {
    if (this.indexOf(id) < 0 && this.#scope !== "all" && !exported) {
      await this.#fetchAt(id, signal);
      this.version.value += 1;
    }
    for (let page = 0; this.indexOf(id) < 0 && page < MOST_PAGES; page += 1) {
      if (this.complete) break;
      await this.#fetch(this.#rows.size, signal);
    }
    return this.indexOf(id);
  }

  // All rows, for what has to see the whole.
  async all(signal) {
    for (let index = 0; index < this.total; index += PAGE) {
      if (!this.row(index)) await this.#fetch(index, signal);
    }
  }

  async #fetch(index, signal) {
    const isNear = index - this.#cursorAbove(index) < NEAR;
    if (exported || isNear) await this.#readOn(index, signal); // with the lanes of above
    else if (this.#scope === "line") await this.#fetchAt(`@~${index}`, signal);
    else await this.#seek(index, signal);
    if (this.row(index)) this.version.value += 1;
  }

  async #fetchAt(at, signal) {
    const page = await this.#ask({ at }, signal);
    this.#place(page, page.position);
    return page;
  }

  // Where nothing tells which checkpoint has an index: a step of the thread's own line is
  // guessed, and each answer says where that step stands. Rows of other threads between
  // two steps are read page by page.
  async #seek(index, signal) {
    let low = { back: 0, index: 0 };
    let high = { back: this.#steps, index: this.total };
    for (let guess = 0; guess < GUESSES && high.back - low.back > 1; guess += 1) {
      const part = (index - low.index) / Math.max(1, high.index - low.index);
      const back = between(low.back, low.back + part * (high.back - low.back), high.back);
      const page = await this.#fetchAt(`@~${back}`, signal);
      if (this.row(index)) return;
      if (page.position < index) low = { back, index: page.position + page.rows.length };
      else high = { back, index: page.position };
    }
    await this.#readOn(index, signal);
  }

  // Page after page, from the last known place above.
  async #readOn(index, signal) {
    for (let page = 0; page < MOST_PAGES && !this.row(index); page += 1) {
      const begin = this.#cursorAbove(index);
      if (begin < 0) return;
      this.#place(await this.#ask({ cursor: this.#cursors.get(begin) }, signal), begin);
    }
  }

  // The last index above from where a page can be asked for; below zero without one.
  #cursorAbove(index) {
    const known = [...this.#cursors.keys()].filter((begin) => begin <= index && !this.row(begin));
    return Math.max(-Infinity, ...known);
  }

  #ask(where, signal) {
    const params = { thread: this.#thread, scope: this.#scope, limit: PAGE, ...where };
    return get("log", params, { signal });
  }

  // The server reads the whole log for it: it comes when it comes, and not more often
  // than the server can bear. The log is readable without it.
  async #loadMinimap() {
    const began = Date.now();
    if (began < this.#minimapRests) return;
    this.#minimapRests = Infinity;
    const params = { thread: this.#thread, buckets: BUCKETS };
    const found = await get("minimap", params).catch(() => null);
    this.#minimapRests = Date.now() + REST * (Date.now() - began);
    if (found === null) return;
    this.buckets = found.buckets;
    this.version.value += 1;
  }

  #clear() {
    this.#rows.clear();
    this.#indexes.clear();
    this.#cursors.clear();
  }

  // Nothing counts a log with rewound steps: then there are as many rows as are known,
  // and one more if there is another page.
  #place({ rows, next, total }, index) {
    if (this.#rows.size > MOST_ROWS) this.#clear();
    rows.forEach((row, offset) => {
      this.#rows.set(index + offset, row);
      this.#indexes.set(row.id, index + offset);
    });
    const end = index + rows.length;
    if (next !== null) this.#cursors.set(end, next);
    this.total = total ?? Math.max(this.total, end + (next === null ? 0 : 1));
  }
}

// A whole number between two others.
function between(low, number, high) {
  return Math.max(low + 1, Math.min(high - 1, Math.round(number)));
}
