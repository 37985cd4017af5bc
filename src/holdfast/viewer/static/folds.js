// Parts that open and close, and stay as they were when the same part is shown again
// for another checkpoint.

import { h } from "./elements.js";

const opened = new Map(); // key → whether the reader opened or closed it

// A `details` whose body is made when it is first opened. `lazy()` gives its children.
export function fold(key, summary, lazy, { open = false, kind = "" } = {}) {
  const element = h("details", { class: `fold ${kind}`, "data-fold": key });
  element.append(h("summary", {}, summary));
  const fill = () => {
    if (element.childElementCount === 1) element.append(h("div", {}, lazy()));
  };
  if (opened.get(key) ?? open) {
    fill();
    element.open = true;
  }
  element.addEventListener("toggle", () => {
    opened.set(key, element.open);
    if (element.open) fill();
  });
  return element;
}

export function isOpened(key) {
  return opened.get(key) ?? false;
}
