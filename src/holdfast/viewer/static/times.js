// Times as people read them. A time beyond the calendar is a number and shown as such.

const clockOf = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium" });
const dayOf = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });
const UNITS = [
  [60, 1, "s"],
  [3600, 60, "min"],
  [86_400, 3600, "h"],
  [Infinity, 86_400, "d"],
];

// How long ago, in one unit.
export function age(at, now = Date.now()) {
  if (typeof at !== "string") return String(at ?? "");
  const seconds = Math.max(0, (now - Date.parse(at)) / 1000);
  if (seconds < 5) return "now";
  const [, size, unit] = UNITS.find(([limit]) => seconds < limit);
  return `${Math.floor(seconds / size)} ${unit}`;
}

// The time of the day.
export function time(at) {
  return typeof at === "string" ? clockOf.format(new Date(at)) : String(at ?? "");
}

// The day, if that is not today.
export function day(at, now = new Date()) {
  if (typeof at !== "string") return "";
  const then = new Date(at);
  return then.toDateString() === now.toDateString() ? "" : dayOf.format(then);
}

export function clock(at) {
  return `${day(at)} ${time(at)}`.trim();
}
