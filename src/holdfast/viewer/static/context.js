// What the model saw when it made this step, and how many tokens each part took.

import { get } from "./api.js";
import { h } from "./elements.js";
import { count } from "./figures.js";
import { fold } from "./folds.js";
import { brief, saidText, textBlock } from "./text.js";

const KNOWN = new Set(["system", "user", "assistant", "tool"]);

export const contextTab = {
  id: "context",
  title: "Context",
  load: ({ checkpoint }, signal) => get("context", { checkpoint }, { signal }),
  show: (found, { checkpoint }) => {
    if (!found.items.length)
      return h(
        "p",
        { class: "empty" },
        "No messages: the model saw nothing of this state.",
      );
    return h(
      "div",
      {},
      bar(found),
      legend(found),
      found.items.map((one, at) => item(one, at, checkpoint)),
    );
  },
};

function byRole(items) {
  const sums = new Map();
  for (const { role, tokens } of items) {
    const name = KNOWN.has(role) ? role : "other";
    sums.set(name, (sums.get(name) ?? 0) + (tokens ?? 0));
  }
  return [...sums];
}

// The bar is as long as the limit of the model where that is known.
function bar({ items, tokens, limit }) {
  const full = Math.max(limit ?? 0, tokens, 1);
  const segments = byRole(items).map(([role, sum]) =>
    h("span", { class: `role-${role}`, style: { width: `${(100 * sum) / full}%` } }),
  );
  const label = `${count(tokens)} tokens${limit ? ` of ${count(limit)}` : ""}`;
  return h(
    "figure",
    { class: "token-bar" },
    h("div", { role: "img", "aria-label": label }, segments),
    h("figcaption", {}, `about ${label}`),
  );
}

function legend({ items, tokens }) {
  const share = (sum) => (tokens ? `${Math.round((100 * sum) / tokens)} %` : "");
  return h(
    "ul",
    { class: "legend" },
    byRole(items).map(([role, sum]) =>
      h(
        "li",
        { class: `role-${role}` },
        `${role} ${count(sum)} `,
        h("span", { class: "muted" }, share(sum)),
      ),
    ),
  );
}

function item(said, at, checkpoint) {
  const { role, tokens, position } = said;
  const title = [
    h("strong", {}, role),
    h("span", { class: "once" }, brief(saidText(said)) || "no text"),
    h("span", { class: "muted end" }, `${count(tokens ?? 0)} tok`),
  ];
  const part = { checkpoint, position: position ?? at };
  const row = fold(`context:${at}`, title, () => body(said, part), {
    kind: `role-${KNOWN.has(role) ? role : "other"}`,
  });
  row.dataset.anchor = at;
  return row;
}

function body({ text, calls }, part) {
  return [
    textBlock(text, part),
    calls.map(({ id, name, arguments: given }) => [
      h("h4", {}, `⚙ ${name}`),
      textBlock(given, { ...part, call: id }),
    ]),
  ];
}
