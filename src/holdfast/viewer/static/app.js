// Puts the page together.

import { readAddress, watchAddress } from "./address.js";
import { exported, get } from "./api.js";
import { detailPane } from "./detail.js";
import { fill, h } from "./elements.js";
import { bytes, plural } from "./figures.js";
import { graphPane } from "./graph.js";
import { closeThread, showKeys, watchKeys } from "./keyboard.js";
import { connection, lastChange, listen } from "./live.js";
import { watch } from "./opened.js";
import { problem } from "./problem.js";
import { throttled } from "./request.js";
import { scrubber } from "./scrubber.js";
import { effect } from "./signals.js";
import { open, pane, settings, status, thread } from "./state.js";
import { readTheme, theme, turnTheme } from "./themes.js";
import { threadsPane } from "./threads.js";
import { takeToken } from "./tokens.js";

const PANES = { threads: "Threads", graph: "History", detail: "Detail" };
const CONNECTIONS = {
  connecting: "connecting",
  live: "live",
  lost: "not connected",
  unreadable: "store cannot be read",
  exported: "exported file",
};
const NOTICE_MS = 8000;
const FACTS_MS = 5000;

async function start() {
  if (!exported) await takeToken();
  readTheme();
  readAddress();
  const app = document.getElementById("app");
  fill(app, header(), main(), scrubber(), statusLine());
  effect(() => void (app.dataset.pane = pane.value));
  effect(() => void (app.dataset.view = thread.value === null ? "home" : "thread"));
  watch();
  watchAddress();
  watchKeys();
  listen();
  if (exported && thread.peek() === null) openOnly();
}

// A file of one thread begins with it.
async function openOnly() {
  const { threads } = await get("threads", { limit: 50 });
  if (threads.length === 1) open(threads[0].id);
}

function main() {
  return h("main", { class: "panes" }, threadsPane(), graphPane(), detailPane());
}

function header() {
  return h(
    "header",
    { class: "top" },
    h("h1", {}, h("button", { type: "button", class: "quiet brand", onclick: closeThread, title: "All threads" }, "Holdfast")),
    storeFacts(),
    paneButtons(),
    h("span", { class: "top-end" }, connectionMark(), themeButton(), keysButton()),
  );
}

function storeFacts() {
  const element = h("p", { class: "store muted" });
  const load = async () => {
    try {
      const about = await get("store");
      fill(element, h("span", { class: "mono store-address" }, about.address), ` ${factsOf(about)}`);
    } catch (error) {
      fill(element, error.status === 401 ? "" : problem(error, load));
    }
  };
  const reload = throttled(FACTS_MS, load);
  effect(() => void (lastChange.value ? reload() : load()));
  return element;
}

function factsOf(about) {
  return [
    about.threads === undefined ? null : plural(about.threads, "thread"),
    about.checkpoints === undefined ? null : plural(about.checkpoints, "checkpoint"),
    about.bytes ? bytes(about.bytes) : null,
    about.encrypted ? "encrypted" : null,
    settings.write ? null : "read-only",
  ].filter(Boolean).join(" · ");
}

// In a narrow window one pane is in sight.
function paneButtons() {
  const buttons = Object.entries(PANES).map(([name, title]) => {
    const button = h("button", { type: "button", class: "quiet", onclick: () => (pane.value = name) }, title);
    effect(() => button.setAttribute("aria-pressed", pane.value === name));
    effect(() => void (button.disabled = name !== "threads" && thread.value === null));
    return button;
  });
  return h("nav", { class: "pane-buttons", "aria-label": "Panes" }, buttons);
}

function connectionMark() {
  const element = h("span", { class: "connection", role: "status" });
  effect(() => {
    element.dataset.state = connection.value;
    fill(element, h("span", { "aria-hidden": "true" }, connection.value === "live" ? "● " : "○ "), CONNECTIONS[connection.value]);
  });
  return element;
}

function themeButton() {
  const button = h("button", { type: "button", class: "quiet", onclick: turnTheme });
  effect(() => {
    button.title = `Colours: ${theme.value}`;
    button.setAttribute("aria-label", button.title);
    fill(button, { system: "◐", light: "○", dark: "●" }[theme.value] ?? "◐");
  });
  return button;
}

function keysButton() {
  return h("button", { type: "button", class: "quiet", title: "Keys", "aria-label": "Keys", onclick: showKeys }, "?");
}

function statusLine() {
  const element = h("p", { class: "status", role: "status" });
  let timer = 0;
  effect(() => {
    fill(element, status.value?.text ?? "");
    clearTimeout(timer);
    if (status.value) timer = setTimeout(() => (status.value = null), NOTICE_MS);
  });
  return element;
}

start();
