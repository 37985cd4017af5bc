// What differs inside two texts, word by word.

const MOST_WORDS = 2000;

// Runs `{ op: "same" | "removed" | "added", text }` that make up both texts.
export function textDifference(old, now) {
  const a = words(old);
  const b = words(now);
  const head = sharedStart(a, b);
  const tail = sharedStart(a.slice(head).reverse(), b.slice(head).reverse());
  const middle = between(
    a.slice(head, a.length - tail),
    b.slice(head, b.length - tail),
  );
  const runs = [
    ...a.slice(0, head).map((text) => ({ op: "same", text })),
    ...middle,
    ...a.slice(a.length - tail).map((text) => ({ op: "same", text })),
  ];
  return joined(runs);
}

function words(text) {
  return text.match(/\s+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu) ?? [];
}

function sharedStart(a, b) {
  let length = 0;
  while (length < a.length && length < b.length && a[length] === b[length]) length += 1;
  return length;
}

// Two long texts with little in common are shown as one removed and one added.
function between(a, b) {
  const removed = a.map((text) => ({ op: "removed", text }));
  const added = b.map((text) => ({ op: "added", text }));
  if (a.length * b.length > MOST_WORDS * MOST_WORDS) return [...removed, ...added];
  return walked(a, b, lengths(a, b));
}

// The length of the longest common subsequence of each pair of ends.
function lengths(a, b) {
  const table = Array.from(
    { length: a.length + 1 },
    () => new Uint16Array(b.length + 1),
  );
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      table[i][j] =
        a[i] === b[j]
          ? table[i + 1][j + 1] + 1
          : Math.max(table[i + 1][j], table[i][j + 1]);
    }
  }
  return table;
}

function walked(a, b, table) {
  const runs = [];
  let i = 0;
  let j = 0;
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      runs.push({ op: "same", text: a[i] });
      i += 1;
      j += 1;
    } else if (j >= b.length || (i < a.length && table[i + 1][j] >= table[i][j + 1])) {
      runs.push({ op: "removed", text: a[i] });
      i += 1;
    } else {
      runs.push({ op: "added", text: b[j] });
      j += 1;
    }
  }
  return runs;
}

function joined(runs) {
  const result = [];
  for (const { op, text } of runs) {
    const last = result.at(-1);
    if (last?.op === op) last.text += text;
    else result.push({ op, text });
  }
  return result;
}
