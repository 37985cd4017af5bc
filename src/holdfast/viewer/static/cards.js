// One thread, or one place that a search found, as a row of the threads pane.

import { h } from "./elements.js";
import { bytes, compact, cost, count } from "./figures.js";
import { age } from "./times.js";

const GLYPHS = { working: "◐", waiting: "?", failed: "✖", done: "✓" };

export const STATES = Object.keys(GLYPHS);

export function threadCard(card, isOpen) {
  return h(
    "div",
    { class: "card", "aria-selected": String(isOpen), title: card.id },
    h("span", { class: "card-title" }, h("span", {}, card.title || card.id), name(card)),
    h("span", { class: "card-age muted", title: String(card.updated_at) }, age(card.updated_at)),
    h("span", { class: "card-text muted" }, lastText(card)),
    h(
      "span",
      { class: "card-figures" },
      stateMark(card.state),
      figure("steps", count(card.steps), card.steps === 1 ? "step" : "steps"),
      figure("tokens", card.tokens ? compact(card.tokens) : "", "tok"),
      figure("cost", card.cost ? cost(card.cost) : "", ""),
      figure("size", bytes(card.size ?? 0), ""),
      figure("forks", card.forks ? count(card.forks) : "", card.forks === 1 ? "fork" : "forks"),
      h("span", { class: "card-people muted" }, people(card)),
    ),
  );
}

function stateMark(state) {
  return h(
    "span",
    { class: `card-state ${state}` },
    h("span", { class: "glyph", "aria-hidden": "true" }, GLYPHS[state] ?? "·"),
    state,
  );
}

export function hitCard(hit, isOpen) {
  return h(
    "div",
    { class: "card hit", "aria-selected": String(isOpen), title: hit.checkpoint },
    h("span", { class: "card-title" }, hit.thread),
    h("span", { class: "card-text" }, marked(hit)),
    h("span", { class: "card-people muted" }, hit.role ?? ""),
  );
}

function figure(name, text, unit) {
  return h(
    "span",
    { class: `card-figure ${name}` },
    text,
    text && unit ? h("span", { class: "unit" }, ` ${unit}`) : null,
  );
}

// Forks have the title of what they are forked from.
function name(card) {
  const mark = card.forked_from ? "↳ " : "";
  const id = !card.title || card.title === card.id ? "" : card.id;
  if (!mark && !id) return null;
  return h("span", { class: mark ? "card-id fork muted" : "card-id muted", title: origin(card) }, mark + id);
}

function origin({ forked_from: from }) {
  return from ? `forked from ${from.thread}` : "";
}

function people(card) {
  return [card.owner, card.agent].filter(Boolean).join(" · ");
}

function lastText(card) {
  if (card.waiting) return `waiting: ${text(card.waiting)}`;
  return card.last ? `${card.last.role ?? ""}: ${text(card.last.text)}` : "";
}

// Long texts come cut, as a document.
function text(value) {
  return typeof value === "string" ? value : (value?.text ?? "");
}

function marked(hit) {
  const whole = text(hit.text);
  const parts = [];
  let end = 0;
  for (const [from, to] of hit.marks ?? []) {
    parts.push(whole.slice(end, from), h("mark", {}, whole.slice(from, to)));
    end = to;
  }
  return [...parts, whole.slice(end)];
}
