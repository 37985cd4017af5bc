// A list of rows of one height. Only the rows in sight are elements, so a list of
// 100,000 rows costs as much as one of 50.

import { h } from "./elements.js";

const MOST = 60;
const SPARE = 8; // rows beyond each edge

export function rem() {
  return parseFloat(getComputedStyle(document.documentElement).fontSize);
}

// `render(index)` gives the element of a row; `chosen(index)` is called on a click or
// Enter; `seen(first, last)` when other rows come in sight. `rowHeight(width)`
// is in rem, as the width of the list is.
export function virtualRows({ label, rowHeight, render, chosen, seen = () => {} }) {
  const space = h("div", { class: "rows-space", role: "presentation" });
  const list = h(
    "div",
    { class: "rows", role: "listbox", tabIndex: 0, "aria-label": label },
    space,
  );
  const shown = new Map(); // index → element
  let count = 0;
  let active = -1;

  const pixels = () => rowHeight(list.clientWidth / rem()) * rem();

  const range = () => {
    const height = pixels();
    const inSight = Math.ceil(list.clientHeight / height) + 1;
    const spare = Math.max(0, Math.min(SPARE, Math.floor((MOST - inSight) / 2)));
    const first = Math.max(0, Math.floor(list.scrollTop / height) - spare);
    return [first, Math.min(count, first + Math.min(MOST, inSight + 2 * spare)) - 1];
  };

  const place = (index) => {
    const element = render(index);
    element.setAttribute("role", "option");
    element.setAttribute("aria-posinset", index + 1);
    element.setAttribute("aria-setsize", count);
    element.setAttribute("data-index", index);
    if (!element.hasAttribute("aria-selected")) element.setAttribute("aria-selected", "false");
    element.id = `${list.id || "rows"}-${index}`;
    element.classList.add("row");
    element.classList.toggle("active", index === active);
    element.style.setProperty("top", `${index * pixels()}px`);
    shown.set(index, element);
    return element;
  };

  const update = (anew) => {
    const [first, last] = range();
    for (const [index, element] of shown) {
      if (anew || index < first || index > last) {
        element.remove();
        shown.delete(index);
      }
    }
    // In the order of the list, as screen readers read it.
    const least = Math.min(...shown.keys());
    const [above, below] = [[], []];
    for (let index = first; index <= last; index += 1) {
      if (!shown.has(index)) (index < least ? above : below).push(place(index));
    }
    space.prepend(...above);
    space.append(...below);
    markActive();
    if (count > 0) seen(first, last);
  };

  const markActive = () => {
    for (const [index, element] of shown) element.classList.toggle("active", index === active);
    const element = shown.get(active);
    if (element) list.setAttribute("aria-activedescendant", element.id);
    else list.removeAttribute("aria-activedescendant");
  };

  const resize = (newCount) => {
    count = newCount;
    active = Math.min(active, count - 1);
    list.hidden = count === 0;
    space.style.setProperty("height", `${count * pixels()}px`);
  };

  const refresh = (newCount) => {
    resize(newCount);
    update(true);
  };

  // Scrolls as little as is needed to have the row in sight.
  const reveal = (index) => {
    const height = pixels();
    const top = index * height;
    const margin = Math.min(2 * height, list.clientHeight / 4);
    if (top < list.scrollTop + margin) list.scrollTop = top - margin;
    else if (top + height > list.scrollTop + list.clientHeight - margin) {
      list.scrollTop = top + height - list.clientHeight + margin;
    }
    update(false);
  };

  const activate = (index) => {
    active = Math.max(0, Math.min(count - 1, index));
    reveal(active);
    markActive();
  };

  const page = () => Math.max(1, Math.floor(list.clientHeight / pixels()) - 1);
  const moves = {
    ArrowDown: () => active + 1,
    ArrowUp: () => active - 1,
    PageDown: () => active + page(),
    PageUp: () => active - page(),
    Home: () => 0,
    End: () => count - 1,
  };

  list.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.key in moves) activate(moves[event.key]());
    else if (event.key === "Enter" || event.key === " ") active >= 0 && chosen(active);
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  list.addEventListener("click", (event) => {
    const element = event.target.closest("[data-index]");
    if (!element) return;
    active = Number(element.getAttribute("data-index"));
    markActive();
    chosen(active);
  });
  list.addEventListener("scroll", () => update(false), { passive: true });
  let heightBefore = pixels();
  new ResizeObserver(() => {
    if (pixels() === heightBefore) return update(false);
    heightBefore = pixels();
    return refresh(count);
  }).observe(list);

  return { element: list, resize, refresh, reveal, activate, range };
}
