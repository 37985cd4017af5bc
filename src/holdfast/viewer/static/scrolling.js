// Keeps the reader's place and focus when the content of a scrolled element is replaced: what was
// on top stays on top, and a reader at the end stays at the end.

const NEAR = 24;

// What to restore after the replacement.
export function placeIn(element) {
  const { scrollTop, scrollHeight, clientHeight } = element;
  const atEnd = scrollHeight > clientHeight && isAtEnd(element);
  const top = element.getBoundingClientRect().top;
  for (const one of element.querySelectorAll("[data-anchor]")) {
    const box = one.getBoundingClientRect();
    if (box.bottom > top)
      return { scrollTop, atEnd, anchor: one.dataset.anchor, above: box.top - top };
  }
  return { scrollTop, atEnd, anchor: null, above: 0 };
}

export function restore(element, place) {
  if (place.atEnd) element.scrollTop = element.scrollHeight;
  else if (!toAnchor(element, place)) element.scrollTop = place.scrollTop;
}

function isAtEnd({ scrollTop, scrollHeight, clientHeight }) {
  return scrollTop + clientHeight >= scrollHeight - NEAR;
}

// A reader at the end stays there when the element becomes smaller, if `wanted()`: what
// stands around it may come later. Gives a function to call after a replacement.
export function keepEnd(element, wanted) {
  let height = 0;
  let atEnd = false;
  const look = () => {
    height = element.clientHeight;
    atEnd = isAtEnd(element);
  };
  element.addEventListener("scroll", () => element.clientHeight === height && look());
  new ResizeObserver(() => {
    if (atEnd && wanted()) element.scrollTop = element.scrollHeight;
    look();
  }).observe(element);
  return look;
}

function toAnchor(element, { anchor, above }) {
  if (anchor === null) return false;
  const found = element.querySelector(`[data-anchor="${CSS.escape(anchor)}"]`);
  if (found === null) return false;
  const top = element.getBoundingClientRect().top;
  element.scrollTop += found.getBoundingClientRect().top - top - above;
  return true;
}

// Gives a function that puts the focus back: on the element with the same id, or on the
// replaced element itself.
export function focusIn(element) {
  const focused = document.activeElement;
  if (focused === element || !element.contains(focused)) return () => {};
  const { id, selectionStart, selectionEnd } = focused;
  return () => {
    const same = id ? document.getElementById(id) : null;
    (same ?? element).focus({ preventScroll: true });
    same?.setSelectionRange?.(selectionStart, selectionEnd);
  };
}
