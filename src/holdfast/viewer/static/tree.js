// The state as a tree that is loaded as it is opened, and who set each value.

import { exported, get } from "./api.js";
import { busyButton } from "./busy.js";
import { copyButton } from "./command.js";
import { fill, h } from "./elements.js";
import { bytes, count, moment, plural } from "./figures.js";
import { forkDialog } from "./fork.js";
import { isCut, textBlock } from "./text.js";
import {
  open as openThread,
  select,
  settings,
  thread as openedThread,
} from "./state.js";

const PAGE = 100;
const OPEN_LEVELS = 2;
const MOST = 500; // children that one answer may have
const MOST_REOPENED = 20; // branches that are loaded again for the next checkpoint
const MOST_ROUNDS = 6; // how deep they are followed

const LONG = 200; // characters of a text that fit its line
const LARGE = 10_000; // bytes from which on they say more than a number of items
const TYPES = new Set(["text", "number", "boolean", "null", "object", "array"]);

const opened = new Map(); // path → whether the reader opened or closed it
const seen = new Map(); // path → how many children the reader saw
let filter = "";

export const treeTab = {
  id: "state",
  title: "State",
  load: async ({ checkpoint }, signal) => {
    const root = await get("state", { checkpoint }, { signal });
    for (let round = 0; round < MOST_ROUNDS; round += 1) {
      const missing = unseen(root.value).slice(0, MOST_REOPENED);
      if (!missing.length) break;
      await Promise.all(missing.map((node) => grow(node, checkpoint, signal)));
    }
    return root.value;
  },
  show: (root, { checkpoint }) => tree(root, checkpoint),
};

// What the reader opened beyond the first answer. It is loaded before the new tree
// replaces the old one, so that nothing jumps.
function unseen(node) {
  const known = node.children?.length ?? 0;
  const isShort = known < (seen.get(node.path) ?? 0) && (!node.children || node.next);
  const below = (node.children ?? []).filter(isContainer).flatMap(unseen);
  return isShort && opened.get(node.path) !== false ? [node, ...below] : below;
}

// More children of a node: those that the reader saw before, or the next page.
async function grow(node, checkpoint, signal) {
  const offset = node.children?.length ?? 0;
  const limit = Math.max(PAGE, (seen.get(node.path) ?? 0) - offset);
  const asked = {
    checkpoint,
    path: node.path,
    depth: 1,
    limit: Math.min(limit, MOST),
    offset,
  };
  const { value } = await get("state", asked, { signal });
  if ((node.children?.length ?? 0) !== offset) return; // two clicks, one answer
  if (!value.children) node.text = value.value;
  node.children = [...(node.children ?? []), ...(value.children ?? [])];
  node.next = value.next;
}

// A node has children, or is closed: it was too large to be read for the listing. A long
// text opens, too.
function isBranch(node) {
  if (isContainer(node)) return node.size !== 0;
  return isCut(node.value) || (node.value?.length ?? 0) > LONG;
}

function isContainer(node) {
  return !("value" in node);
}

function tree(root, checkpoint) {
  const list = h("ul", { class: "tree" }, childItems(root, checkpoint, 1));
  const box = h("input", {
    type: "search",
    id: "state-filter",
    value: filter,
    placeholder: "Filter names and values",
    "aria-label": "Filter names and values",
    oninput: () => sift(list, (filter = box.value)),
  });
  sift(list, filter);
  return h("div", {}, h("div", { class: "toolbar" }, box), list);
}

function childItems(node, checkpoint, level) {
  const text = node.text ?? node.value;
  if (text) return [h("li", {}, textBlock(text, { checkpoint, path: node.path }))];
  if (!node.children.length) return [h("li", { class: "muted" }, "empty")];
  const items = node.children.map((child) => item(child, checkpoint, level));
  return node.next ? [...items, moreItem(node, checkpoint, level)] : items;
}

function item(node, checkpoint, level) {
  const name = h("span", { class: "key" }, String(node.key));
  const content = isBranch(node)
    ? branch(node, name, checkpoint, level)
    : h("div", { class: "leaf" }, name, value(node, checkpoint), tools(node));
  return h("li", { "data-anchor": node.path, "data-text": textOf(node) }, content);
}

// A row that opens on a click. It is no `details`: its row has more buttons, which must
// not stand inside another one.
function branch(node, name, checkpoint, level) {
  const list = h("ul", { class: "tree" });
  const preview = h("span", { class: `value type-${kindOf(node)}` }, previewOf(node));
  const toggle = h("button", { type: "button", class: "toggle" }, name, preview);
  const show = (open) => {
    toggle.setAttribute("aria-expanded", open);
    list.hidden = !open;
    if (open && !list.childElementCount) fillBranch(list, node, checkpoint, level);
  };
  toggle.addEventListener("click", () => {
    opened.set(node.path, list.hidden);
    show(list.hidden);
  });
  show(opened.get(node.path) ?? (level < OPEN_LEVELS && Boolean(node.children)));
  const who = blameButton(node.path, checkpoint, "who", "quiet who");
  return [h("div", { class: "branch" }, toggle, tools(node, who)), list];
}

async function fillBranch(list, node, checkpoint, level) {
  try {
    if (isContainer(node) && !node.children) await grow(node, checkpoint);
    seen.set(node.path, node.children?.length ?? 0);
    fill(list, childItems(node, checkpoint, level + 1));
  } catch (error) {
    fill(list, h("li", { class: "muted" }, error.message));
  }
}

function moreItem(node, checkpoint, level) {
  const known = node.children.length;
  const label = `${count(known)} of ${count(node.size)} — show more`;
  const line = h("li", {});
  const show = async () => {
    await grow(node, checkpoint);
    seen.set(node.path, node.children.length);
    line.replaceWith(...childItems(node, checkpoint, level).slice(known));
  };
  line.append(busyButton(label, show));
  return line;
}

// What the filter looks at.
function textOf(node) {
  return `${node.key} ${node.preview ?? ""}`.toLowerCase();
}

// A click on a value asks who set it; the answer stands below the value.
function value(node, checkpoint) {
  const kind = `value type-${kindOf(node)}`;
  return blameButton(node.path, checkpoint, previewOf(node), kind);
}

function blameButton(path, checkpoint, label, kind) {
  const title = "Which checkpoint set this?";
  const button = h("button", { type: "button", class: kind, title }, label);
  button.addEventListener("click", () =>
    toggleBlame(button.closest("li"), path, checkpoint),
  );
  return button;
}

function kindOf({ type }) {
  return TYPES.has(type) ? type : "other";
}

function previewOf(node) {
  if (isContainer(node)) return node.preview || outline(node);
  return node.type === "text" ? `"${node.preview}"` : node.preview;
}

function outline({ type, children }) {
  if (type !== "object" || !children) return type;
  return `{${children.map(({ key }) => key).join(", ")}}`;
}

function sizeOf(node) {
  if (node.bytes > LARGE) return bytes(node.bytes);
  if (isContainer(node)) return node.size === null ? "" : plural(node.size, "item");
  return node.size > LONG ? plural(node.size, "character") : "";
}

function tools(node, more = null) {
  return h(
    "span",
    { class: "end" },
    h("span", { class: "muted" }, sizeOf(node)),
    more,
    copyButton(node.path, "path"),
  );
}

// --- who set it -----------------------------------------------------------------------

async function toggleBlame(line, path, checkpoint) {
  const shown = line.querySelector(":scope > .blame");
  if (shown) return void shown.remove();
  const box = h("p", { class: "blame", role: "status" }, "Looking for the checkpoint");
  line.firstElementChild.after(box);
  try {
    const found = await get("blame", { checkpoint, path });
    fill(box, blameText(found, editButton(path, checkpoint)));
  } catch (error) {
    fill(box, error.message);
  }
  box.scrollIntoView({ block: "nearest" });
}

function blameText({ checkpoint, step, at, thread, kind }, editing) {
  const go = () =>
    thread === openedThread.value ? select(checkpoint) : openThread(thread, checkpoint);
  return [
    "Set by ",
    h(
      "button",
      { type: "button", class: "link", onclick: go },
      `step ${step} of ${thread}`,
    ),
    ` (${kind}), ${moment(at)}.`,
    editing,
  ];
}

function editButton(path, id) {
  if (!settings.write || exported) return null;
  const edit = async () => {
    forkDialog(await get("checkpoint", { id }), { edit: true, path });
  };
  return busyButton("Edit and fork", edit, { class: "quiet" });
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
