// Axes, lines and texts in SVG. Lengths are CSS pixels: a figure is redrawn when its width
// changes, so that its letters have the same size on every screen.

const clamp = (value, low, high) => Math.min(high, Math.max(low, value));

function shape(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  Object.entries(attributes).forEach(([key, value]) => element.setAttribute(key, value));
  element.append(...children);
  return element;
}

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  Object.entries(attributes).forEach(([key, value]) => made.setAttribute(key, value));
  made.append(...children);
  return made;
}

// Splits "overlap *q*_t" into words, italic symbols and subscripts.
function pieces(text) {
  const found = text.matchAll(/\*([^*]+)\*|_(\w+)|([^*_]+)/g);
  return [...found].map(([, symbol, below, plain]) => ({ symbol, below, plain }));
}

// The same as HTML.
const words = (text) =>
  pieces(text).map(({ symbol, below, plain }) => {
    if (symbol) return element("i", { class: "symbol" }, symbol);
    return below ? element("sub", {}, below) : plain;
  });

// The same as SVG, where the text after a subscript has to be moved up again.
function svgText(text, attributes) {
  let lowered = false;
  const spans = pieces(text).map(({ symbol, below, plain }) => {
    const move = below ? { dy: "0.28em" } : lowered ? { dy: "-0.2em" } : {};
    lowered = Boolean(below);
    const kind = symbol ? { class: "symbol" } : below ? { class: "below" } : {};
    return shape("tspan", { ...move, ...kind }, symbol ?? below ?? plain);
  });
  return shape("text", attributes, ...spans);
}

// Round numbers between the ends, in steps of 1, 2, 2.5 or 5 times a power of ten.
function ticks([low, high], about) {
  const raw = (high - low) / about;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = power * [1, 2, 2.5, 5, 10].find((m) => m * power >= raw * 0.999);
  const first = Math.ceil(low / step - 1e-9);
  const count = Math.floor(high / step + 1e-9) - first + 1;
  return Array.from({ length: count }, (_, i) =>
    Number(((first + i) * step).toPrecision(12)),
  );
}

const linear = ([a, b], [from, to]) => {
  const scale = (value) => from + ((value - a) / (b - a)) * (to - from);
  scale.inverse = (pixel) => a + ((pixel - from) / (to - from)) * (b - a);
  scale.domain = [a, b];
  return scale;
};

const MARGIN = { left: 46, right: 14, top: 26, bottom: 40 };

// An empty figure in `holder`: scales `x` and `y`, a layer `plot` that is clipped at the axes
// and a layer `over` that is not. `room` is the holder's width: to read it here would make
// the browser lay out the page once a figure. With `decades`, y is the exponent of a power
// of ten. `columns` are the names of x and y in the downloaded data.
function frame(holder, { room, x, y, xLabel, yLabel, columns, decades = false }) {
  const width = Math.max(240, room);
  const height = Math.round(clamp(width * 0.64, 220, 300));
  const [left, right] = [MARGIN.left, width - MARGIN.right];
  const [top, bottom] = [MARGIN.top, height - MARGIN.bottom];
  const scales = { x: linear(x, [left, right]), y: linear(y, [bottom, top]) };
  const id = `clip-${holder.id}`;
  const clip = shape(
    "clipPath",
    { id },
    shape("rect", {
      x: left - 1,
      y: top - 1,
      width: right - left + 2,
      height: bottom - top + 2,
    }),
  );
  const grid = shape("g", { class: "grid" });
  ticks(x, width / 65).forEach((tick) => grid.append(...xTick(scales.x(tick), tick)));
  ticks(y, height / 48)
    .filter((tick) => !decades || Number.isInteger(tick))
    .forEach((tick) => grid.append(...yTick(scales.y(tick), tick)));
  function xTick(at, tick) {
    const line = shape("line", { x1: at, x2: at, y1: top, y2: bottom });
    return [line, shape("text", { x: at, y: bottom + 16, class: "middle" }, String(tick))];
  }
  function yTick(at, tick) {
    const line = shape("line", { x1: left, x2: right, y1: at, y2: at });
    const exponent = shape("tspan", { dy: "-0.5em", class: "below" }, String(tick));
    const label = decades ? ["10", exponent] : [String(tick).replace("-", "\u2212")];
    return [line, shape("text", { x: left - 7, y: at + 4, class: "end" }, ...label)];
  }
  const axes = shape("path", { class: "axis", d: `M${left},${top}V${bottom}H${right}` });
  const xName = svgText(xLabel, { x: (left + right) / 2, y: height - 6, class: "middle" });
  const yName = svgText(yLabel, { x: 4, y: 14 });
  const plot = shape("g", { "clip-path": `url(#${id})` });
  const over = shape("g");
  const svg = shape("svg", { width, height, "aria-hidden": "true" });
  svg.append(shape("defs", {}, clip), grid, axes, xName, yName, plot, over);
  holder.replaceChildren(svg);
  const curves = [];
  return { ...scales, plot, over, left, right, top, bottom, columns, curves };
}

const line = (figure, xs, ys, kind) => {
  // Limited, because coordinates far outside of the frame can confuse the renderer.
  const at = (i) => {
    const [x, y] = [figure.x(xs[i]), clamp(figure.y(ys[i]), -1e4, 1e4)];
    return `${x.toFixed(2)},${y.toFixed(2)}`;
  };
  const d = `M${Array.from(xs, (_, i) => at(i)).join("L")}`;
  figure.plot.append(shape("path", { d, class: `line ${kind}` }));
  figure.curves.push({ kind, xs: Array.from(xs), ys: Array.from(ys) });
};

const upright = (figure, x, kind) => line(figure, [x, x], figure.y.domain, kind);
const level = (figure, y, kind) => line(figure, figure.x.domain, [y, y], kind);

const MARKS = {
  dot: "M-4.5,0a4.5,4.5 0 1,0 9,0a4.5,4.5 0 1,0 -9,0z",
  ring: "M-4.5,0a4.5,4.5 0 1,0 9,0a4.5,4.5 0 1,0 -9,0z",
  square: "M-4,-4h8v8h-8z",
  diamond: "M0,-6L6,0L0,6L-6,0z",
  target: "M-8,0a8,8 0 1,0 16,0a8,8 0 1,0 -16,0z M-3,0a3,3 0 1,0 6,0a3,3 0 1,0 -6,0z",
  cross: "M-5,-5L5,5M5,-5L-5,5",
};

const mark = (figure, x, y, form, kind) =>
  figure.over.append(
    shape("path", {
      d: MARKS[form],
      class: `mark ${form} ${kind}`,
      transform: `translate(${figure.x(x).toFixed(2)},${figure.y(y).toFixed(2)})`,
    }),
  );

// A legend: a swatch and words for each line [kind, words] or mark [kind, words, form]. It
// names the curves of the figure, too.
function legend(holder, figure, entries) {
  const swatch = ([kind, text, form]) => {
    const drawn = form
      ? shape("path", {
          d: MARKS[form],
          class: `mark ${form} ${kind}`,
          transform: "translate(14,9)",
        })
      : shape("path", { d: "M1,9H27", class: `line ${kind}` });
    const svg = shape("svg", { width: 28, height: 18, "aria-hidden": "true" }, drawn);
    return element("li", {}, svg, element("span", {}, ...words(text)));
  };
  holder.replaceChildren(...entries.map(swatch));
  const lines = entries.filter(([, , form]) => !form);
  const names = Object.fromEntries(lines);
  figure.curves.forEach((curve) => (curve.name = names[curve.kind]?.replaceAll("*", "")));
}
