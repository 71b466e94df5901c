// The controls of the page: sliders, numbers, pointers, the address.

let state = { ...DEFAULTS };
let held = null;
const rows = {};
const figures = {};
const byId = (id) => document.getElementById(id);

const PANELS = {
  overlap: drawOverlap,
  norm: drawNorm,
  portrait: drawPortrait,
  steady: drawSteady,
};

function set(wanted) {
  state = valid(wanted, state);
  show();
  rememberInHash();
}

// Browsers limit how often the address may change in a second; a slider changes more often.
let pending;
function rememberInHash() {
  clearTimeout(pending);
  pending = setTimeout(() => history.replaceState(null, "", toHash(state)), 150);
}

function show() {
  const view = viewOf(state, { room: byId("overlap-figure").clientWidth, held });
  showControls();
  showNumbers(view);
  Object.entries(PANELS).forEach(([name, draw]) => {
    figures[name] = draw(byId(`${name}-figure`), byId(`${name}-legend`), view);
  });
  describe(view);
}

// The curves of a figure that its legend names, as CSV, below the parameters and numbers.
function csv(figure) {
  const { columns, curves } = figures[figure];
  const known = { ...state, ...numbersOf(viewOf(state)) };
  const rows = curves
    .filter((curve) => curve.name)
    .flatMap(({ name, xs, ys }) => xs.map((x, i) => `"${name}",${x},${ys[i]}`));
  const present = Object.entries(known).filter(([, value]) => value !== null);
  const notes = present.map(([key, value]) => `# ${key} = ${value}`);
  return [...notes, ["curve", ...columns].join(","), ...rows, ""].join("\n");
}

function download(name) {
  const url = URL.createObjectURL(new Blob([csv(name)], { type: "text/csv" }));
  element("a", { href: url, download: `${name}-${state.rule}.csv` }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

function makeDownload(name) {
  const title = byId(`${name}-figure`).parentElement.querySelector("h2");
  const label = `Download the data of “${title.textContent}” as CSV`;
  const button = element("button", { type: "button", "aria-label": label }, "Data (CSV)");
  button.addEventListener("click", () => download(name));
  title.after(button);
}

function describe(view) {
  Object.entries(inWords(view)).forEach(([panel, text]) => {
    byId(`${panel}-figure`).setAttribute("aria-label", text);
  });
  byId("norm-note").replaceChildren(...words(normNote(view)));
  byId("portrait-note").replaceChildren(...words(portraitNote(view)));
  byId("equation").replaceChildren(...words(EQUATIONS[state.rule]));
  const { falls } = ALGORITHMS[state.rule].schedule;
  const complete = falls && state.turning === 0;
  byId("complete").hidden = !complete;
  byId("transition").hidden = complete;
  byId("stuck").hidden = state.q0 !== 0;
}

function showNumbers(view) {
  Object.entries(numbersOf(view)).forEach(([name, value]) => {
    byId(`number-${name}`).textContent = written(value);
  });
  byId("moment").textContent = String(state.t);
  byId("best-lam0-row").hidden = state.rule !== "ino-pca";
  byId("best-rate-row").hidden = bestRate(state) === null;
}

function showControls() {
  const role = roles(state);
  Object.entries(rows).forEach(([name, { row, label, range, number, note }]) => {
    const { hidden = false, idle = false, note: text = "" } = role[name] ?? {};
    const called = role[name]?.words ?? SLIDERS[name].words;
    label.replaceChildren(...words(`${SLIDERS[name].symbol} `), called);
    number.setAttribute("aria-label", `${called}, as a number`);
    range.max = number.max = name === "t" ? state.t_max : SLIDERS[name].max;
    range.value = number.value = state[name];
    range.disabled = number.disabled = idle;
    row.hidden = hidden;
    note.replaceChildren(...words(text));
  });
  document.querySelector(`input[name=rule][value=${state.rule}]`).checked = true;
  byId("beside").value = state.beside;
}

function makeRow(name, { min, max, step }) {
  const id = `slider-${name}`;
  const limits = { min, max, step };
  const label = element("label", { for: id });
  const range = element("input", {
    type: "range",
    id,
    ...limits,
    "aria-describedby": `${id}-note`,
  });
  const number = element("input", { type: "number", ...limits });
  const note = element("small", { id: `${id}-note` });
  range.addEventListener("input", () => set({ [name]: range.value }));
  // Not at every key, because a half-typed number is another number.
  number.addEventListener("change", () => {
    set({ [name]: number.value });
    number.value = state[name];
  });
  const row = element("div", { class: "slider" }, label, number, range, note);
  rows[name] = { row, label, range, number, note };
  return row;
}

function makeChoices() {
  const choice = ([rule, name]) => {
    const input = element("input", { type: "radio", name: "rule", value: rule });
    input.addEventListener("change", () => set({ rule }));
    return element("label", {}, input, element("span", {}, name));
  };
  byId("rules").append(...Object.entries(NAMES).map(choice));
  const option = ([value, name]) => element("option", { value }, name);
  byId("beside").append(...Object.entries(BESIDE).map(option));
  byId("beside").addEventListener("change", (event) => set({ beside: event.target.value }));
  byId("sliders").append(...Object.entries(SLIDERS).map((entry) => makeRow(...entry)));
  byId("reset").addEventListener("click", () => set(DEFAULTS));
}

// The values that a place in a figure stands for.
const MEANINGS = {
  overlap: (t) => ({ t }),
  norm: (t) => ({ t }),
  steady: (omega) => ({ omega }),
  portrait: (q0, y) => {
    if (state.rule === "oja") return { q0 };
    if (state.rule === "ada-oja") return { q0, tau: y };
    return { q0, lam0: state.rule === "krasulina" ? 10 ** y : y };
  },
};

const onStep = ([name, value]) => {
  const { step } = SLIDERS[name];
  return [name, Number((Math.round(value / step) * step).toFixed(6))];
};

function letPoint(name) {
  const holder = byId(`${name}-figure`);
  const point = (event) => {
    const { x, y } = figures[name];
    const box = holder.getBoundingClientRect();
    const place = [x.inverse(event.clientX - box.left), y.inverse(event.clientY - box.top)];
    set(Object.fromEntries(Object.entries(MEANINGS[name](...place)).map(onStep)));
  };
  const release = () => {
    if (held) show((held = null));
  };
  holder.addEventListener("pointerdown", (event) => {
    holder.setPointerCapture(event.pointerId);
    if (name === "portrait") held = figures.portrait.y.domain;
    point(event);
  });
  holder.addEventListener("pointermove", (event) => {
    if (holder.hasPointerCapture(event.pointerId)) point(event);
  });
  holder.addEventListener("lostpointercapture", release);
}

function start() {
  makeChoices();
  Object.keys(PANELS).forEach(letPoint);
  Object.keys(PANELS).forEach(makeDownload);
  state = valid(fromHash(location.hash), DEFAULTS);
  window.addEventListener("hashchange", () => {
    // The link that skips to the main part says nothing about the state.
    if (location.hash === "#main") return rememberInHash();
    state = valid(fromHash(location.hash), DEFAULTS);
    show();
  });
  let width = 0;
  new ResizeObserver(() => {
    const wide = byId("overlap-figure").clientWidth;
    if (wide !== width) show((width = wide));
  }).observe(byId("overlap-figure"));
  show();
}

// For tests and the console: the state that is shown, the path at increasing times, and the
// data of a figure.
window.explorer = {
  get state() {
    return { ...state };
  },
  set,
  numbers: () => numbersOf(viewOf(state)),
  path: (ts) => (ts ? pathAt(state, ts) : path(state)),
  csv,
};

start();
