// Requests of a pane of which only the newest counts: a new one ends the one before it,
// so that a slow answer can never replace a newer one.

// Gives `latest(work)`: calls `work(signal)` and gives its result, or `undefined` if a
// later call came in between.
export function newestOnly() {
  let controller = null;
  return async function latest(work) {
    controller?.abort();
    const mine = new AbortController();
    controller = mine;
    try {
      const result = await work(mine.signal);
      return controller === mine ? result : undefined;
    } catch (error) {
      if (controller !== mine || error.name === "AbortError") return undefined;
      throw error;
    }
  };
}

// Calls `fn` at most once in so many milliseconds, and once more after the last call.
export function throttled(milliseconds, fn) {
  let timer = null;
  let again = false;
  const run = () => {
    fn();
    timer = setTimeout(() => {
      timer = null;
      if (again) {
        again = false;
        run();
      }
    }, milliseconds);
  };
  return () => {
    if (timer === null) run();
    else again = true;
  };
}
