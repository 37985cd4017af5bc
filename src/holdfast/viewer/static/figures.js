// Numbers, sizes and times as people read them.

const whole = new Intl.NumberFormat("en");
const brief = new Intl.NumberFormat("en", {
  notation: "compact",
  maximumFractionDigits: 1,
});
const day = new Intl.DateTimeFormat("en-GB", {
  dateStyle: "medium",
  timeStyle: "medium",
});
const UNITS = ["B", "kB", "MB", "GB", "TB"];

export function count(number) {
  return whole.format(number);
}

// As many digits as an axis or a chip has room for.
export function compact(number) {
  return brief.format(number);
}

export function plural(number, word) {
  return `${count(number)} ${word}${number === 1 ? "" : "s"}`;
}

export function bytes(number) {
  let unit = 0;
  let left = number;
  for (; left >= 1000 && unit < UNITS.length - 1; unit += 1) left /= 1000;
  const digits = unit === 0 || left >= 100 ? 0 : 1;
  return `${left.toFixed(digits)} ${UNITS[unit]}`;
}

export function cost(dollars) {
  if (!dollars) return "$0";
  return `$${dollars < 0.1 ? dollars.toPrecision(2) : dollars.toFixed(2)}`;
}

export function duration(milliseconds) {
  if (milliseconds < 1000) return `${Math.round(milliseconds)} ms`;
  if (milliseconds < 60_000) return `${(milliseconds / 1000).toFixed(1)} s`;
  if (milliseconds < 3_600_000) return `${(milliseconds / 60_000).toFixed(1)} min`;
  return `${(milliseconds / 3_600_000).toFixed(1)} h`;
}

// A time of the store; one beyond the calendar is a number of microseconds and stays it.
export function moment(at) {
  if (typeof at !== "string") return at === null || at === undefined ? "" : String(at);
  return day.format(new Date(at));
}
