// What went wrong, what to do, and a button that tries again.

import { h } from "./elements.js";
import { ApiError } from "./api.js";
import { setToken } from "./tokens.js";

export function problem(error, retry) {
  const known = error instanceof ApiError;
  if (known && error.status === 401) return tokenForm();
  return h(
    "div",
    { class: "problem", role: "alert" },
    h("p", { class: "bad" }, h("span", { "aria-hidden": "true" }, "✖ "), error.message),
    known && error.hint ? h("p", { class: "muted" }, error.hint) : null,
    h("button", { type: "button", onclick: retry }, "Try again"),
  );
}

function tokenForm() {
  const input = h("input", {
    type: "password",
    autocomplete: "off",
    required: true,
    "aria-label": "Address or token",
    placeholder: "http://127.0.0.1:…/#token=…",
  });
  const submit = (event) => {
    event.preventDefault();
    setToken(input.value.trim().replace(/^.*#token=/, ""));
    location.reload();
  };
  return h(
    "form",
    { class: "problem", onsubmit: submit },
    h("p", { role: "alert" }, "This page has no valid token."),
    h(
      "p",
      { class: "muted" },
      "Open the address that holdfast serve printed, or paste it here.",
    ),
    input,
    h("button", { class: "primary" }, "Open"),
  );
}
