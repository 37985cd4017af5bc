// The transcript of a checkpoint, with each tool call and its result on one card.

import { get } from "./api.js";
import { busyButton } from "./busy.js";
import { fill, h } from "./elements.js";
import { count, moment, plural } from "./figures.js";
import { fold } from "./folds.js";
import { message } from "./state.js";
import { bodyText, brief, roleClass, textBlock } from "./text.js";

const PAGE = 100;
const PICTURES = /^image\/(png|jpeg|gif|webp)$/;
const ROLES = { user: "◆", assistant: "●", tool: "⚙", system: "§", developer: "§" };
const STATES = { done: "✓", failed: "✖", open: "?" };

let reach = { thread: null, first: Infinity }; // how far back the reader went
let revealed = null; // the message that a search found and that was scrolled to

// Without numbers the server gives the last page, which an exported file has, too.
export const chatTab = {
  id: "chat",
  title: "Chat",
  toEnd: true,
  load: async ({ thread, checkpoint }, signal) => {
    const first = firstWanted(thread, message.value);
    const page = await get("messages", { checkpoint }, { signal });
    if (first >= firstOf(page)) return page;
    return withEarlier(checkpoint, page, first, signal);
  },
  show: (page, { checkpoint }) => transcript(page, checkpoint),
};

function firstWanted(thread, position) {
  if (reach.thread !== thread) reach = { thread, first: Infinity };
  if (position !== null) reach.first = Math.min(reach.first, position);
  return reach.first;
}

function firstOf({ messages, total }) {
  return messages.length > 0 ? messages[0].position : total;
}

// All messages from the wanted one on; if those are many, a page that begins there.
async function withEarlier(checkpoint, page, first, signal) {
  const missing = firstOf(page) - first;
  const limit = Math.min(missing, PAGE);
  const earlier = await get("messages", { checkpoint, first, limit }, { signal });
  if (missing > PAGE) return earlier;
  return { ...page, messages: [...earlier.messages, ...page.messages] };
}

function transcript(page, checkpoint) {
  if (page.total === 0) {
    return h("p", { class: "empty" }, "The state of this checkpoint has no messages.");
  }
  const list = h("div", { class: "transcript" }, messageElements(page, checkpoint));
  const first = firstOf(page);
  const end = first + page.messages.length;
  queueMicrotask(() => reveal(list, checkpoint));
  return h(
    "div",
    {},
    earlierButton(list, first, checkpoint),
    list,
    laterButton(list, end, page.total, checkpoint),
  );
}

function messageElements({ messages }, checkpoint) {
  const results = new Set(messages.flatMap((one) => one.calls.map((c) => c.position)));
  return messages
    .filter((one) => !(one.role === "tool" && results.has(one.position)))
    .map((one) => messageElement(one, checkpoint));
}

function earlierButton(list, begin, checkpoint) {
  let first = begin;
  return pageButton(checkpoint, {
    left: () => first,
    word: "earlier message",
    next: (limit) => (reach.first = first -= limit),
    add: (elements) => list.prepend(...elements),
  });
}

function laterButton(list, end, total, checkpoint) {
  let following = end;
  return pageButton(checkpoint, {
    left: () => total - following,
    word: "later message",
    next: (limit) => (following += limit) - limit,
    add: (elements) => list.append(...elements),
  });
}

// `left()` messages are not shown; `next(limit)` is the first of those that come now.
function pageButton(checkpoint, { left, word, next, add }) {
  if (left() === 0) return null;
  const label = () => `${plural(left(), word)} — show ${Math.min(left(), PAGE)}`;
  const show = async (button) => {
    const limit = Math.min(left(), PAGE);
    const found = await get("messages", { checkpoint, first: next(limit), limit });
    add(messageElements(found, checkpoint));
    button.textContent = label();
    button.hidden = left() === 0;
  };
  return busyButton(label(), show, { class: "page" });
}

function messageElement(said, checkpoint) {
  const { position, role, name } = said;
  return h(
    "article",
    { class: `message role-${roleClass(role)}`, "data-anchor": position },
    h(
      "header",
      {},
      h("span", { class: "glyph", "aria-hidden": "true" }, ROLES[role] ?? "○"),
      h("strong", {}, role || "message"),
      name ? h("span", { class: "muted" }, name) : null,
      h("span", { class: "muted end" }, facts(said)),
    ),
    textBlock(said.text, { checkpoint, position }),
    said.parts.map((part, at) => partElement(part, { checkpoint, position, part: at })),
    said.calls.map((call) => callCard(call, position, checkpoint)),
  );
}

// What stands beside the role.
function facts({ position, tokens, at }) {
  const known = [`[${position}]`, tokens ? `${count(tokens)} tok` : "", moment(at)];
  return known.filter(Boolean).join("  ");
}

// --- tool calls -----------------------------------------------------------------------

function callCard(call, asked, checkpoint) {
  const state = STATES[call.status] ? call.status : "open";
  const title = [
    h("span", { class: "glyph", "aria-hidden": "true" }, STATES[state]),
    h("strong", {}, call.name),
    h("span", { class: "once" }, brief(call.arguments)),
    h("span", { class: "once muted" }, outcome(call, state)),
  ];
  const key = `call:${asked}:${call.id ?? call.name}`;
  const kind = `call is-${state}`;
  const card = fold(key, title, () => callBody(call, asked, checkpoint), { kind });
  card.dataset.result = call.position ?? "";
  return card;
}

function outcome(call, state) {
  if (state === "open") return "→ no result yet";
  return `→ ${state === "failed" ? "failed: " : ""}${brief(call.result)}`;
}

function callBody(call, asked, checkpoint) {
  const given = { checkpoint, position: asked, call: call.id };
  const result =
    call.position === null ? null : { checkpoint, position: call.position };
  return [
    h("h4", {}, "Arguments"),
    textBlock(pretty(call.arguments), given),
    h("h4", {}, "Result"),
    call.status === "open"
      ? h("p", { class: "muted" }, "No result is stored.")
      : textBlock(pretty(call.result), result),
    call.id ? h("p", { class: "muted" }, `call ${call.id}`) : null,
  ];
}

// Texts that hold JSON are shown with line breaks.
function pretty(value) {
  if (typeof value !== "string") return value;
  try {
    const parsed = JSON.parse(value);
    return typeof parsed === "object" ? JSON.stringify(parsed, null, 2) : value;
  } catch {
    return value;
  }
}

// --- attachments ----------------------------------------------------------------------

function partElement(part, where) {
  if (part.kind === "thinking") {
    const title = h("span", { class: "muted" }, "thinking");
    return fold(`thinking:${part.path}`, title, () => textBlock(part.text, where));
  }
  if (!part.bytes) {
    const about = [part.kind, part.name, part.url].filter(Boolean).join(" ");
    return h("p", { class: "muted" }, about);
  }
  return attachment(part, where);
}

function attachment(part, where) {
  const box = h("div", { class: "attachment" });
  const label = [part.name, `${bodyText(part)} — show`].filter(Boolean).join(" ");
  const show = async () => fill(box, bodyElement(await get("part", where), part));
  box.append(busyButton(label, show));
  return box;
}

function bodyElement({ base64, text }, part) {
  const { media } = part;
  if (base64 && PICTURES.test(media ?? "")) {
    return h("img", {
      src: `data:${media};base64,${base64}`,
      alt: `${part.name ?? ""} ${bodyText(part)}`,
    });
  }
  return h("pre", {}, h("code", {}, text ?? base64 ?? ""));
}

// --- the message that was asked for ---------------------------------------------------

function reveal(list, checkpoint) {
  const position = message.peek();
  const found = `${checkpoint} ${position}`;
  if (position === null || revealed === found) return;
  revealed = found;
  const card = list.querySelector(`[data-result="${Number(position)}"]`);
  const shown = list.querySelector(`[data-anchor="${Number(position)}"]`) ?? card;
  if (shown === null) return;
  if (shown === card) card.open = true;
  requestAnimationFrame(() => {
    shown.classList.add("found");
    shown.scrollIntoView({ block: "center" });
  });
}
