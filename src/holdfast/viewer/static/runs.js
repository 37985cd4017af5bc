// Long runs of tool steps, each folded to one line of a list.

const SHORTEST = 5;
// A longer run is several lines: the rows of all lines in sight have to be loaded.
const LONGEST = 100;

// The runs among the rows of a log that are loaded, newest first: `{ first, count, id,
// tool }`, where `first` is the index of a run's first row and `id` that row's.
export function runsOf(log) {
  const found = [];
  for (const rows of stretches(log)) {
    for (const [first, last] of pieces(rows)) {
      if (last - first + 1 < SHORTEST) continue;
      const run = Array.from({ length: last - first + 1 }, (_, at) => log.row(first + at));
      found.push({ first, count: run.length, id: run[0].id, tool: onlyTool(run) });
    }
  }
  return found;
}

// Where the rows of a log stand in a list with folded runs: as few numbers as there are
// runs, however long the log is.
export class FoldedRows {
  #runs;
  #hidden = 0;

  constructor(runs) {
    this.#runs = runs.map((run) => {
      const at = run.first - this.#hidden;
      this.#hidden += run.count - 1;
      return { ...run, at, behind: this.#hidden };
    });
  }

  // How many lines a log of so many rows has.
  count(total) {
    return total - this.#hidden;
  }

  // What a line shows: `{ first, count, id, tool }`; a count above one is a run.
  line(index) {
    const run = this.#last((one) => one.at <= index);
    if (run?.at === index) return run;
    return { first: index + (run?.behind ?? 0), count: 1 };
  }

  // The line of a row.
  lineOf(row) {
    const run = this.#last((one) => one.first <= row);
    if (run && row < run.first + run.count) return run.at;
    return row - (run?.behind ?? 0);
  }

  #last(isBefore) {
    let [low, high] = [0, this.#runs.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (isBefore(this.#runs[middle])) low = middle + 1;
      else high = middle;
    }
    return this.#runs[low - 1];
  }
}

// Plain steps that follow one another, as pairs of indexes.
function* stretches(log) {
  let first = null;
  let before = null;
  for (const index of log.loaded()) {
    const goesOn = before === index - 1 && follows(log.row(before), log.row(index));
    if (first !== null && !goesOn) {
      yield [first, before];
      first = null;
    }
    if (first === null && isPlainStep(log.row(index))) first = index;
    before = index;
  }
  if (first !== null) yield [first, before];
}

// A long stretch is cut where the same place is cut again when more of it is loaded.
function* pieces([first, last]) {
  if (last - first < LONGEST) return yield [first, last];
  for (let begin = first; begin <= last; ) {
    const end = Math.min(last, begin - (begin % LONGEST) + LONGEST - 1);
    yield [begin, end];
    begin = end + 1;
  }
}

function follows(above, row) {
  return isPlainStep(row) && above.parent === row.id && above.lane === row.lane;
}

function isPlainStep(row) {
  const marked = row.error || row.label || row.tags.length || row.heads.length;
  return Boolean(row.tool || row.role === "tool") && !marked && row.ending.length === 0;
}

function onlyTool(run) {
  const names = new Set(run.map((row) => row.tool).filter(Boolean));
  return names.size === 1 ? [...names][0] : null;
}
