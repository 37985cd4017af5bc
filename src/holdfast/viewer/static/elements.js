// Makes elements and text nodes. Text never becomes markup here, so stored text
// cannot become an element, whatever it holds.

const SVG = "http://www.w3.org/2000/svg";

// An element with properties and children. A property is: `class`, `style` (an object
// of CSS properties), a function `on…`, an attribute with a dash in its name (`data-…`,
// `aria-…`), or a property of the element. `null`, `undefined` and `false` are left out
// of attributes.
export function h(tag, props, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props ?? {})) set(element, name, value);
  append(element, children);
  return element;
}

// The same for SVG, where everything is an attribute.
export function svg(tag, props, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(props ?? {})) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else attribute(element, name, value);
  }
  append(element, children);
  return element;
}

// Replaces all children.
export function fill(element, ...children) {
  element.replaceChildren();
  append(element, children);
  return element;
}

function set(element, name, value) {
  if (name === "class") attribute(element, name, value);
  else if (name === "style") style(element, value);
  else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
  else if (name in element && !name.includes("-")) element[name] = value;
  else attribute(element, name, value);
}

function attribute(element, name, value) {
  if (value === null || value === undefined || value === false) return;
  element.setAttribute(name, value === true ? "" : String(value));
}

// By property: a content security policy refuses attributes `style`.
function style(element, properties) {
  for (const [name, value] of Object.entries(properties)) {
    element.style.setProperty(name, value);
  }
}

function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
}
