// Light, dark, or as the system has it.

import { effect, signal } from "./signals.js";

const KEY = "holdfast-theme";
const NEXT = { system: "light", light: "dark", dark: "system" };

export const theme = signal("system");

export function readTheme() {
  show(remembered() ?? "system");
}

export function turnTheme() {
  show(NEXT[theme.peek()] ?? "system");
  remember(theme.peek());
}

function show(name) {
  document.documentElement.setAttribute("data-theme", name);
  theme.value = name;
}

// Calls `paint` now and whenever colours change: a canvas knows no CSS variables.
export function inTheme(paint) {
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paint);
  effect(() => {
    theme.value;
    paint();
  });
}

// A page in a sandbox, such as a notebook's, has no storage.
function remembered() {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}

function remember(name) {
  try {
    localStorage.setItem(KEY, name);
  } catch {
    return;
  }
}
