// Buttons whose work takes time: they cannot be pressed twice, and tell what failed.

import { h } from "./elements.js";
import { notify } from "./state.js";

// `work(button)` may be asynchronous.
export function busyButton(label, work, props = {}) {
  const button = h("button", { type: "button", ...props }, label);
  button.addEventListener("click", async () => {
    button.disabled = true;
    try {
      await work(button);
    } catch (error) {
      notify([error.message, error.hint].filter(Boolean).join(" "));
    }
    button.disabled = false;
  });
  return button;
}
