// Stored texts and values: cut by the server, shown whole on request.

import { get } from "./api.js";
import { busyButton } from "./busy.js";
import { fill, h } from "./elements.js";
import { bytes, count } from "./figures.js";

const LONGEST_LINE = 200;
const FENCE = /^```[^\n]*\n([\s\S]*?)^```\s*$/m;

// What the server sends for a text: the text, or the beginning of a long one.
export function plainText(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "string") return value;
  if (isCut(value)) return value.text;
  return JSON.stringify(value, null, 2);
}

export function isCut(value) {
  return value !== null && typeof value === "object" && value.cut === true;
}

// A text with its code fences set apart. `part` says where the server has the whole of
// one that was cut.
export function textBlock(value, part = null) {
  const block = h("div", { class: "text" }, paragraphs(plainText(value)));
  if (isCut(value)) block.append(wholeButton(block, value, part));
  return block;
}

function wholeButton(block, value, part) {
  const label = `${count(value.length)} characters`;
  if (part === null) return h("p", { class: "muted" }, `The first part of ${label}.`);
  const show = async () => {
    const { text } = await get("part", part);
    fill(block, paragraphs(text));
  };
  return busyButton(`Show all ${label}`, show);
}

function paragraphs(text) {
  const found = FENCE.exec(text);
  if (!found) return text ? [h("span", {}, text)] : [];
  const before = text.slice(0, found.index);
  const after = text.slice(found.index + found[0].length);
  return [
    ...(before ? [h("span", {}, before)] : []),
    h("pre", {}, h("code", {}, found[1])),
    ...paragraphs(after.replace(/^\n/, "")),
  ];
}

// A role is stored text: only letters of it become part of the name of a class.
export function roleClass(role) {
  return String(role ?? "").replace(/[^a-z]/g, "") || "other";
}

// What a message says, with the calls it makes.
export function saidText({ text, calls = [] }) {
  const made = calls.map(
    ({ name, arguments: given }) => `⚙ ${name} ${valueText(given)}`,
  );
  return [plainText(text), ...made].filter(Boolean).join("\n");
}

// A value on one line, as JSON; a cut text ends with how long it is.
export function valueText(value) {
  if (value === undefined) return "";
  if (isCut(value))
    return `${JSON.stringify(value.text)} (${count(value.length)} characters)`;
  if (isBody(value)) return bodyText(value);
  return JSON.stringify(value);
}

// The beginning of a value, for a line that CSS shortens to its width.
export function brief(value) {
  const text = typeof value === "string" ? value : valueText(value);
  return text.slice(0, LONGEST_LINE).replace(/\s+/g, " ");
}

// A value in full, with line breaks.
export function valueBlock(value) {
  if (isBody(value)) return h("p", {}, bodyText(value));
  return h("pre", { class: "value" }, h("code", {}, plainText(value)));
}

// An attachment or a large value of which the server sends only what it is.
export function isBody(value) {
  return (
    value !== null &&
    typeof value === "object" &&
    typeof value.bytes === "number" &&
    typeof value.kind === "string"
  );
}

export function bodyText({ kind, bytes: size }) {
  return `${kind} ${bytes(size)}`;
}
