// The state as a tree that is loaded as it is opened, and who set each value.

import { get } from "./api.js";
import { copyButton } from "./command.js";
import { fill, h } from "./elements.js";
import { bytes, count, moment, plural } from "./figures.js";
import { open as openThread, select, thread as openedThread } from "./state.js";

const PAGE = 100;
const OPEN_LEVELS = 2;
const MOST_REOPENED = 20; // branches that are loaded again for the next checkpoint

const opened = new Map(); // path → whether the reader opened or closed it
let filter = "";

export const treeTab = {
  id: "state",
  title: "State",
  load: async ({ checkpoint }, signal) => {
    const root = await get("state", { checkpoint }, { signal });
    await Promise.all(reopened(root.value).map((node) => grow(node, checkpoint, signal)));
    return root.value;
  },
  show: (root, { checkpoint }) => tree(root, checkpoint),
};

// Branches that the reader opened below what the first answer has. They are loaded
// before the new tree replaces the old one, so that nothing jumps.
function reopened(node) {
  const below = (node.children ?? []).flatMap((child) => {
    if (isBranch(child) && !child.children && opened.get(child.path)) return [child];
    return reopened(child);
  });
  return below.slice(0, MOST_REOPENED);
}

async function grow(node, checkpoint, signal, offset = 0) {
  const asked = { checkpoint, path: node.path, depth: 1, limit: PAGE, offset };
  const { value } = await get("state", asked, { signal });
  if ((node.children?.length ?? 0) !== offset) return; // two clicks, one answer
  node.children = [...(node.children ?? []), ...(value.children ?? [])];
  node.next = value.next;
}

function isBranch(node) {
  return node.children !== undefined || (node.size > 0 && /^(object|array)$/.test(node.type));
}

function tree(root, checkpoint) {
  const list = h("ul", { class: "tree" }, childItems(root, checkpoint, 1));
  const box = h("input", {
    type: "search",
    value: filter,
    placeholder: "Filter names and values",
    "aria-label": "Filter names and values",
    oninput: () => sift(list, (filter = box.value)),
  });
  sift(list, filter);
  return h("div", {}, h("div", { class: "toolbar" }, box), list);
}

function childItems(node, checkpoint, level) {
  if (!node.children?.length) return [h("li", { class: "muted" }, node.preview ?? "empty")];
  const items = node.children.map((child) => item(child, checkpoint, level));
  return node.next ? [...items, moreItem(node, checkpoint, level)] : items;
}

function item(node, checkpoint, level) {
  const row = [nameOf(node), value(node, checkpoint), tools(node)];
  if (!isBranch(node)) {
    return h("li", { "data-anchor": node.path, "data-text": textOf(node) }, h("div", { class: "leaf" }, row));
  }
  return h("li", { "data-anchor": node.path, "data-text": textOf(node) }, branch(node, row, checkpoint, level));
}

function branch(node, row, checkpoint, level) {
  const isOpen = opened.get(node.path) ?? level < OPEN_LEVELS;
  const list = h("ul", { class: "tree" });
  const details = h("details", { open: isOpen }, h("summary", {}, row), list);
  const show = async () => {
    if (!node.children) await grow(node, checkpoint);
    fill(list, childItems(node, checkpoint, level + 1));
  };
  if (isOpen) show();
  details.addEventListener("toggle", () => {
    if (details.open === (opened.get(node.path) ?? isOpen)) return;
    opened.set(node.path, details.open);
    if (details.open && !list.childElementCount) show();
  });
  return details;
}

function moreItem(node, checkpoint, level) {
  const known = node.children.length;
  const label = `${count(known)} of ${count(node.size)} shown — show more`;
  const button = h("button", { type: "button" }, label);
  const line = h("li", {}, button);
  button.addEventListener("click", async () => {
    button.disabled = true;
    await grow(node, checkpoint, undefined, known);
    line.replaceWith(...childItems(node, checkpoint, level).slice(known));
  });
  return line;
}

function nameOf(node) {
  return h("span", { class: "key" }, String(node.key));
}

function textOf(node) {
  return `${node.key} ${node.preview ?? ""}`.toLowerCase();
}

// A click on a value asks who set it; the answer stands below the value.
function value(node, checkpoint) {
  const button = h(
    "button",
    { type: "button", class: `value type-${node.type}`, title: "Which checkpoint set this?" },
    node.preview ?? "",
  );
  button.addEventListener("click", (event) => {
    event.preventDefault();
    toggleBlame(button.closest("li"), node.path, checkpoint);
  });
  return button;
}

function tools(node) {
  const size = isBranch(node) ? plural(node.size, "item") : node.size > 100 ? bytes(node.size) : "";
  return h("span", { class: "end" }, h("span", { class: "muted" }, size), copyButton(node.path, "path"));
}

// --- who set it -----------------------------------------------------------------------

async function toggleBlame(line, path, checkpoint) {
  const shown = line.querySelector(":scope > .blame");
  if (shown) return shown.remove();
  const box = h("p", { class: "blame", role: "status" }, "Looking for the checkpoint …");
  line.append(box);
  const found = await get("blame", { checkpoint, path }).catch((error) => error);
  return fill(box, found instanceof Error ? found.message : blameText(found));
}

function blameText({ checkpoint, step, at, thread, kind }) {
  const go = () => (thread === openedThread.value ? select(checkpoint) : openThread(thread, checkpoint));
  return [
    "Set by ",
    h("button", { type: "button", class: "link", onclick: go }, `step ${step} of ${thread}`),
    ` (${kind}), ${moment(at)}.`,
  ];
}

// --- the filter -----------------------------------------------------------------------

// A line stays if it has the text, or a line inside it or around it has the text.
function sift(list, text) {
  const sought = text.trim().toLowerCase();
  const has = (line) => (line?.dataset.text ?? "").includes(sought);
  const lines = [...list.querySelectorAll("li")];
  const found = new Set(lines.filter(has));
  for (const line of lines) {
    const around = line.parentElement.closest("li");
    if (found.has(around)) found.add(line);
  }
  for (const line of lines) {
    line.hidden = !(found.has(line) || [...line.querySelectorAll("li")].some(has));
  }
}
