// The transcript of a checkpoint, with each tool call and its result on one card.

import { get } from "./api.js";
import { h } from "./elements.js";
import { bytes, count, moment, plural } from "./figures.js";
import { fold } from "./folds.js";
import { signal } from "./signals.js";
import { bodyText, plainText, textBlock, valueText } from "./text.js";

const PAGE = 100;
const LONGEST_SUMMARY = 120;
const ROLES = { user: "◆", assistant: "●", tool: "⚙", system: "§", developer: "§" };
const STATES = { done: "✓", failed: "✖", open: "?" };

// The message that was asked for, `{ position }`: the chat scrolls there once.
export const wanted = signal(null);

let revealed = null; // the last one that it scrolled to
let reach = { thread: null, first: Infinity }; // how far back the reader went

// Without numbers the server gives the last page, which an exported file has, too.
export const chatTab = {
  id: "chat",
  title: "Chat",
  toEnd: true,
  load: async ({ thread, checkpoint }, signal) => {
    const first = firstWanted(thread, wanted.value);
    const page = await get("messages", { checkpoint }, { signal });
    if (first >= firstOf(page)) return page;
    return withEarlier(checkpoint, page, first, signal);
  },
  show: (page, { checkpoint }) => transcript(page, checkpoint),
};

function firstWanted(thread, target) {
  if (reach.thread !== thread) reach = { thread, first: Infinity };
  if (target !== revealed) reach.first = Math.min(reach.first, target.position);
  return reach.first;
}

function firstOf({ messages, total }) {
  return messages.length > 0 ? messages[0].position : total;
}

async function withEarlier(checkpoint, page, first, signal) {
  const limit = Math.min(firstOf(page) - first, PAGE * 10);
  const earlier = await get("messages", { checkpoint, first, limit }, { signal });
  const reaches = firstOf(page) - first === earlier.messages.length;
  if (!reaches) return earlier;
  return { ...page, messages: [...earlier.messages, ...page.messages] };
}

function transcript(page, checkpoint) {
  if (page.total === 0) {
    return h("p", { class: "empty" }, "The state of this checkpoint has no messages.");
  }
  const list = h("div", { class: "transcript" }, messageElements(page, checkpoint));
  const earlier = earlierButton(list, page, checkpoint);
  const pane = h("div", {}, earlier, list);
  queueMicrotask(() => reveal(list));
  return pane;
}

function messageElements({ messages }, checkpoint) {
  const results = new Set(messages.flatMap((one) => one.calls.map((c) => c.position)));
  return messages
    .filter((one) => !(one.role === "tool" && results.has(one.position)))
    .map((one) => messageElement(one, checkpoint));
}

function earlierButton(list, page, checkpoint) {
  let first = firstOf(page);
  if (first === 0) return null;
  const label = () => `${plural(first, "earlier message")} — show ${Math.min(first, PAGE)}`;
  const button = h("button", { type: "button", class: "earlier" }, label());
  button.addEventListener("click", async () => {
    button.disabled = true;
    const limit = Math.min(first, PAGE);
    first -= limit;
    reach.first = first;
    const found = await get("messages", { checkpoint, first, limit });
    list.prepend(...messageElements(found, checkpoint));
    button.textContent = label();
    button.disabled = false;
    button.hidden = first === 0;
  });
  return button;
}

function messageElement(message, checkpoint) {
  const { position, role, name } = message;
  return h(
    "article",
    { class: `message role-${safe(role)}`, "data-anchor": position },
    h(
      "header",
      {},
      h("span", { class: "glyph", "aria-hidden": "true" }, ROLES[role] ?? "○"),
      h("strong", {}, role || "message"),
      name ? h("span", { class: "muted" }, name) : null,
      h("span", { class: "muted end" }, facts(message)),
    ),
    textBlock(message.text, { checkpoint, position }),
    (message.parts ?? []).map((part, at) => partElement(part, at, message, checkpoint)),
    message.calls.map((call) => callCard(call, position, checkpoint)),
  );
}

// A role is stored text: only letters of it become part of a class.
function safe(role) {
  return String(role ?? "").replace(/[^a-z]/g, "");
}

function facts({ position, tokens, at }) {
  const known = [`[${position}]`, tokens ? `${count(tokens)} tok` : "", moment(at)];
  return known.filter(Boolean).join("  ");
}

// --- tool calls -----------------------------------------------------------------------

function callCard(call, asked, checkpoint) {
  const state = stateOf(call);
  const title = [
    h("span", { class: "glyph", "aria-hidden": "true" }, STATES[state]),
    h("strong", {}, call.name),
    h("span", { class: "once" }, brief(call.arguments)),
    h("span", { class: "once muted" }, resultBrief(call, state)),
  ];
  const key = `call:${call.id ?? `${asked}:${call.name}`}`;
  const card = fold(key, title, () => callBody(call, asked, checkpoint), {
    kind: `call is-${state}`,
  });
  card.dataset.result = call.position ?? "";
  return card;
}

function stateOf({ status, result }) {
  if (["failed", "error"].includes(status)) return "failed";
  return result === undefined || result === null ? "open" : "done";
}

function resultBrief(call, state) {
  if (state === "open") return "→ no result yet";
  return `→ ${state === "failed" ? "failed: " : ""}${brief(call.result)}`;
}

function brief(value) {
  const text = typeof value === "string" ? value : valueText(value);
  const line = text.replace(/\s+/g, " ");
  if (line.length <= LONGEST_SUMMARY) return line;
  return `${line.slice(0, LONGEST_SUMMARY)} …`;
}

function callBody(call, asked, checkpoint) {
  const part = { checkpoint, position: asked, call: call.id };
  const result = { checkpoint, position: call.position };
  return [
    h("h4", {}, "Arguments"),
    textBlock(pretty(call.arguments), part),
    h("h4", {}, "Result"),
    call.result === undefined || call.result === null
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

function partElement(part, at, { position }, checkpoint) {
  if (part.kind === "text") return textBlock(part.text, { checkpoint, position, part: at });
  const box = h("div", { class: "attachment" });
  const show = async (event) => {
    event.target.disabled = true;
    const found = await get("part", { checkpoint, position, part: at }).catch((e) => e);
    box.replaceChildren(found instanceof Error ? found.message : bodyElement(found));
  };
  const label = `${bodyText(part)} — show`;
  box.append(h("button", { type: "button", onclick: show }, label));
  return box;
}

function bodyElement({ media, base64, text, bytes: size }) {
  if (base64 && /^image\/(png|jpeg|gif|webp)$/.test(media ?? "")) {
    return h("img", { src: `data:${media};base64,${base64}`, alt: `${media} ${bytes(size ?? 0)}` });
  }
  return h("pre", {}, h("code", {}, plainText(text ?? base64 ?? "")));
}

// --- the message that was asked for ---------------------------------------------------

function reveal(list) {
  const target = wanted.peek();
  if (target === revealed) return;
  revealed = target;
  const { position } = target;
  const card = list.querySelector(`[data-result="${Number(position)}"]`);
  const shown = list.querySelector(`[data-anchor="${Number(position)}"]`) ?? card;
  if (shown === null) return;
  if (shown === card) card.open = true;
  requestAnimationFrame(() => {
    shown.classList.add("found");
    shown.scrollIntoView({ block: "center" });
  });
}
