// Long runs of tool steps, folded to one line.

const SHORTEST = 5;

// What a list shows of rows, newest first: `{ first, count, tool }`; a count above one is
// a run. `keeps(row)` says which rows must be seen, `unfolded` which runs (by the id of
// their first row) are open.
export function folded(rows, keeps, unfolded) {
  const entries = [];
  for (let first = 0; first < rows.length; ) {
    const count = runLength(rows, first);
    const run = rows.slice(first, first + count);
    const folds = count >= SHORTEST && !unfolded.has(run[0].id) && !run.some(keeps);
    if (folds) entries.push({ first, count, tool: onlyTool(run) });
    else for (let each = 0; each < count; each += 1) entries.push({ first: first + each, count: 1 });
    first += count;
  }
  return entries;
}

function runLength(rows, first) {
  let end = first;
  while (end < rows.length && isPlainStep(rows[end]) && (end === first || goesOn(rows, end))) {
    end += 1;
  }
  return Math.max(1, end - first);
}

function goesOn(rows, index) {
  return rows[index - 1].parent === rows[index].id && rows[index - 1].lane === rows[index].lane;
}

function isPlainStep(row) {
  const marked = row.error || row.label || row.tags.length || row.heads.length;
  return Boolean(row.tool || row.role === "tool") && !marked && row.ending.length === 0;
}

function onlyTool(run) {
  const names = new Set(run.map((row) => row.tool).filter(Boolean));
  return names.size === 1 ? [...names][0] : null;
}
