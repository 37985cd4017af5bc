// Values that know their readers. An effect runs again after a value that it has read
// changes; several changes in one `batch` run it once.

let reader = null; // the effect or computed value that runs now
let batches = 0;
const queue = new Set();

class Signal {
  version = 0;
  readers = new Set();
  refresh = () => {}; // replaced in computed values

  constructor(value) { this.current = value; }

  get value() {
    const value = this.peek();
    reader?.reads(this);
    return value;
  }
  set value(value) {
    if (Object.is(value, this.current)) return;
    this.current = value;
    this.version += 1;
    batch(() => this.tell());
  }
  peek() { // the value, for code that must not run again when it changes
    this.refresh();
    return this.current;
  }
  tell() { for (const one of this.readers) one.sourceChanged(); }
}

class Reader {
  sources = new Map(); // source → the version that was read

  reads(source) {
    source.readers.add(this);
    this.sources.set(source, source.version);
  }
  forget() {
    for (const source of this.sources.keys()) source.readers.delete(this);
    this.sources.clear();
  }
  outdated() {
    return [...this.sources].some(([source, seen]) => (source.peek(), source.version !== seen));
  }
  run(fn) {
    this.forget();
    const outer = reader;
    reader = this;
    try { return fn(); } finally { reader = outer; }
  }
}

export const signal = (value) => new Signal(value);

// A value made of others: made when it is read, and again after one of them has changed.
export function computed(fn) {
  const [self, result] = [new Reader(), new Signal()];
  let fresh = false;
  self.sourceChanged = () => fresh && ((fresh = false), result.tell());
  result.refresh = () => {
    if (fresh) return;
    const same = self.sources.size > 0 && !self.outdated();
    fresh = true;
    if (!same) result.value = self.run(fn);
  };
  return result;
}

// Runs `fn` now and after each change of what it read. A function that `fn` returns runs
// before the next time. Gives a function that ends the effect.
export function effect(fn) {
  const self = new Reader();
  let cleanup = null;
  self.sourceChanged = () => queue.add(self);
  const clean = () => typeof cleanup === "function" && cleanup();
  self.rerun = () => (clean(), (cleanup = null), (cleanup = self.run(fn)));
  self.rerun();
  return () => (clean(), self.forget(), queue.delete(self));
}

export function batch(fn) {
  batches += 1;
  try { return fn(); } finally {
    if (batches === 1) queue.forEach(runQueued);
    batches -= 1;
  }
}

// An effect that fails is reported and must not keep the others from running.
function runQueued(one) {
  queue.delete(one);
  try {
    if (one.outdated()) one.rerun();
  } catch (error) {
    reportError(error);
  }
}
