// The rows of a thread's log, newest first. Pages are loaded as they are needed, from
// the top or from any place in the middle; a row is found by its index or by its id.

import { get } from "./api.js";
import { newestOnly } from "./request.js";
import { signal } from "./signals.js";

const PAGE = 200;
const BUCKETS = 2000;
const MOST_ROWS = 8000;
const MOST_PAGES = 50; // that are read to find a row of a log that cannot be counted

export class Log {
  total = 0;
  buckets = [];
  version = signal(0); // counts what was loaded
  #thread;
  #scope;
  #latest = newestOnly();
  #rows = new Map(); // index → row
  #indexes = new Map(); // id → index
  #cursors = new Map(); // index → the cursor of the page that begins there

  constructor(thread, scope) {
    this.#thread = thread;
    this.#scope = scope;
  }

  row(index) {
    return this.#rows.get(index);
  }

  // -1 if no row with this id is loaded.
  indexOf(id) {
    return this.#indexes.get(id) ?? -1;
  }

  get complete() {
    return this.#rows.size === this.total;
  }

  // Begins, or begins again after a change: lanes of old rows may have changed with it.
  async load(signal) {
    const [page, minimap] = await Promise.all([
      this.#ask({}, signal),
      this.#scope === "family" ? this.#minimap(signal) : { buckets: [] },
    ]);
    this.#clear();
    this.buckets = minimap.buckets;
    this.#place(page, 0);
    this.version.value += 1;
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
    if (this.indexOf(id) < 0 && this.#scope !== "all") {
      const page = await this.#ask({ at: id }, signal);
      this.#place(page, page.position);
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
    const cursor = this.#cursors.get(index);
    const at = cursor === undefined ? this.#idNear(index) : undefined;
    if (cursor === undefined && at === undefined) return;
    const page = await this.#ask({ cursor, at }, signal);
    this.#place(page, cursor === undefined ? page.position : index);
    this.version.value += 1;
  }

  #ask(where, signal) {
    const params = { thread: this.#thread, scope: this.#scope, limit: PAGE, ...where };
    return get("log", params, { signal });
  }

  // The log is readable without its minimap.
  #minimap(signal) {
    const params = { thread: this.#thread, buckets: BUCKETS };
    return get("minimap", params, { signal }).catch(() => ({ buckets: [] }));
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

  // A checkpoint whose page has the row, as a reference.
  #idNear(index) {
    if (this.#scope === "line") return `@~${index}`;
    let end = 0;
    for (const bucket of this.buckets) {
      end += bucket.count;
      if (index < end) return bucket.first;
    }
    return undefined;
  }
}
