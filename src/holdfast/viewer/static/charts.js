// What the steps of the line took and how the state grew. Each picture has a table with
// the same numbers.

import { get } from "./api.js";
import { h } from "./elements.js";
import { bytes, compact, cost, count, duration } from "./figures.js";
import { fold } from "./folds.js";
import { plot } from "./plot.js";
import { select } from "./state.js";

const BUCKETS = 200;
const COLOURS = [
  "--chart-1",
  "--chart-2",
  "--chart-3",
  "--chart-4",
  "--chart-5",
  "--chart-6",
];
const MOST_VALUES = COLOURS.length;

export const chartsTab = {
  id: "charts",
  title: "Charts",
  load: ({ thread, checkpoint }, signal) =>
    get("charts", { thread, tip: checkpoint, buckets: BUCKETS }, { signal }),
  show: (found) =>
    h(
      "div",
      { class: "charts" },
      charts(found).map((one) => chart(one, found)),
    ),
};

function charts(found) {
  return [
    {
      title: "Tokens",
      bars: true,
      label: compact,
      series: [line("tokens", found.tokens, 0)],
    },
    { title: "Cost", bars: true, label: cost, series: [line("cost", found.cost, 0)] },
    {
      title: "Duration of steps",
      bars: true,
      label: duration,
      series: [line("duration", found.took_ms, 0)],
    },
    {
      title: "Size of the state and what each step stored",
      label: bytes,
      series: [
        line("logical", found.logical, 0),
        { ...line("stored", found.stored, 1), dash: [4, 3] },
      ],
    },
    {
      title: "Which values grow",
      label: bytes,
      stacked: true,
      series: grown(found.values ?? {}),
    },
  ].filter(({ series }) => series.some(({ values }) => values.some((value) => value)));
}

function line(name, values, at) {
  return { name, values: values ?? [], colour: COLOURS[at] };
}

// The largest values at the end, and all others as one.
function grown(values) {
  const size = ([, sizes]) => sizes.at(-1) ?? 0;
  const sorted = Object.entries(values).sort((a, b) => size(b) - size(a));
  const shown = sorted.slice(
    0,
    sorted.length > MOST_VALUES ? MOST_VALUES - 1 : MOST_VALUES,
  );
  const rest = sorted.slice(shown.length).map(([, sizes]) => sizes);
  const named = shown.map(([name, sizes], at) => line(name, sizes, at));
  if (!rest.length) return named;
  const sum = rest[0].map((_, at) =>
    rest.reduce((all, sizes) => all + (sizes[at] ?? 0), 0),
  );
  return [...named, line("others", sum, MOST_VALUES - 1)];
}

function chart(about, found) {
  const steps = stepsOf(found, about);
  const canvas = h("canvas", { role: "img", "aria-label": summary(about, steps) });
  const told = h(
    "p",
    { class: "muted reading" },
    reading(about, steps, steps.length - 1),
  );
  const draw = () =>
    canvas.clientWidth &&
    plot(canvas, { ...about, first: `step ${steps[0]}`, last: `step ${steps.at(-1)}` });
  watch(canvas, draw);
  pointed(canvas, draw, found, (at) => (told.textContent = reading(about, steps, at)));
  return h(
    "figure",
    { "data-anchor": about.title },
    h(
      "figcaption",
      {},
      about.title,
      about.series.length > 1 ? legend(about.series) : null,
    ),
    canvas,
    told,
    fold(`table:${about.title}`, "Table", () => table(about, steps)),
  );
}

function stepsOf({ steps }, { series }) {
  return steps ?? series[0].values.map((_, at) => at + 1);
}

// A new size and another theme draw again, until the canvas has left the page.
function watch(canvas, draw) {
  const left = new AbortController();
  const sizes = new ResizeObserver(() => (canvas.isConnected ? draw() : left.abort()));
  const theme = new MutationObserver(draw);
  sizes.observe(canvas);
  theme.observe(document.documentElement, { attributeFilter: ["data-theme"] });
  const dark = matchMedia("(prefers-color-scheme: dark)");
  dark.addEventListener("change", draw, { signal: left.signal });
  left.signal.addEventListener("abort", () => {
    sizes.disconnect();
    theme.disconnect();
  });
}

function pointed(canvas, draw, found, tell) {
  const at = (event) => draw()?.at?.(event.offsetX);
  canvas.addEventListener("pointermove", (event) => {
    const place = at(event);
    if (place !== undefined) tell(place);
  });
  canvas.addEventListener("click", (event) => {
    const id = found.ids?.[at(event)];
    if (id) select(id);
  });
}

function legend(series) {
  return h(
    "ul",
    { class: "legend" },
    series.map(({ name, colour }) =>
      h("li", { style: { "--swatch": `var(${colour})` } }, name),
    ),
  );
}

function reading({ series, label }, steps, at) {
  const told = series.map(({ name, values }) => `${name} ${label(values[at] ?? 0)}`);
  return `step ${steps[at]}: ${told.join(", ")}`;
}

function summary({ title, series, label }, steps) {
  const told = series.map(({ name, values }) => {
    const known = values.map((value) => value ?? 0);
    return `${name} at most ${label(Math.max(...known))}, at the end ${label(known.at(-1))}`;
  });
  return `${title} over ${count(steps.length)} points: ${told.join("; ")}.`;
}

function table({ series, label }, steps) {
  const head = h(
    "tr",
    {},
    h("th", { scope: "col" }, "Step"),
    series.map(({ name }) => h("th", { scope: "col" }, name)),
  );
  const rows = steps.map((step, at) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, step),
      series.map(({ values }) => h("td", {}, label(values[at] ?? 0))),
    ),
  );
  return h(
    "div",
    { class: "scroll", tabIndex: 0 },
    h("table", {}, h("thead", {}, head), h("tbody", {}, rows)),
  );
}
