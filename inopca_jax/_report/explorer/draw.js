// The curves over time and the steady state over omega. A `view` holds what is drawn: the
// state, its path, its values at the chosen time, and the same of a second algorithm.

const OMEGA_MAX = 4;
const LN10 = Math.LN10;

const NAMES = {
  "ino-pca": "INO-PCA",
  oja: "Oja",
  cubic: "Cubic",
  krasulina: "Krasulina",
  "adaptive-ino-pca": "adaptive INO-PCA",
  "ada-oja": "AdaOja",
  ccipca: "CCIPCA",
};

// Krasulina's norm grows exponentially, so its axis is logarithmic.
const inDecades = ({ state, other }) =>
  [state.rule, other?.state.rule].includes("krasulina");

const heights = (path, decades) =>
  decades ? path.logLam.map((value) => value / LN10) : path.lam;

// The smallest of a few fixed ends that is above the values, so that an axis does not change
// continuously as a slider moves.
function endAbove(values) {
  const most = Math.max(...values) * 1.03;
  return [0.5, 1, 1.5, 2, 3, 4, 6, 8, 10].find((end) => end >= most) ?? Math.ceil(most);
}

function normRange(paths, decades, more = []) {
  const values = paths.flatMap((path) => heights(path, decades)).concat(more);
  if (!decades) return [0, endAbove([...values, 1.5])];
  const [least, most] = [Math.min(...values), Math.max(...values)];
  return [Math.min(-1, Math.floor(least)), Math.max(1, Math.ceil(most))];
}

const linesOf = (view) => [
  ["main", view.name],
  ...(view.other ? [["other", view.other.name]] : []),
];

// Offline PCA begins to learn at t = 1/omega^2, with a vertical tangent. Points are at equal
// steps of the square root of the time since then, so that they lie closer there.
function offlineCurve({ omega, t_max }) {
  const onset = Math.min(1 / omega ** 2, t_max);
  const ts = Array.from(
    { length: 161 },
    (_, i) => onset + (t_max - onset) * (i / 160) ** 2,
  );
  return [
    [0, ...ts],
    [0, ...ts.map((t) => offline(omega, t))],
  ];
}

function drawOverlap(holder, key, view) {
  const { state, path, now } = view;
  const figure = frame(holder, {
    room: view.room,
    x: [0, state.t_max],
    y: [0, 1],
    xLabel: "time *t* = *k*/*p*",
    yLabel: "overlap *q*_t",
    columns: ["t", "q"],
  });
  level(figure, view.steady.q, "rest");
  const stands = state.turning === 0;
  if (stands) line(figure, ...offlineCurve(state), "offline");
  line(figure, path.ts, oracleAt(state, path.ts), "oracle");
  if (view.other) line(figure, view.other.path.ts, view.other.path.q, "other");
  line(figure, path.ts, path.q, "main");
  upright(figure, state.t, "now");
  mark(figure, state.t, now.q, "diamond", "main");
  legend(key, figure, [
    ...linesOf(view),
    ["rest", "steady state *q*_s"],
    ["oracle", "oracle: the best gain"],
    ...(stands ? [["offline", "offline PCA, samples alone"]] : []),
  ]);
  return figure;
}

function drawNorm(holder, key, view) {
  const { state, path, now } = view;
  const decades = inDecades(view);
  const paths = [path, ...(view.other ? [view.other.path] : [])];
  const rests = Number.isFinite(view.steady.lam);
  const rest = decades ? Math.log10(view.steady.lam) : view.steady.lam;
  const figure = frame(holder, {
    room: view.room,
    x: [0, state.t_max],
    y: normRange(paths, decades, rests ? [rest] : []),
    xLabel: "time *t* = *k*/*p*",
    yLabel: "norm *λ*_t",
    columns: ["t", decades ? "log10_lam" : "lam"],
    decades,
  });
  if (rests) level(figure, rest, "rest");
  if (view.other)
    line(figure, view.other.path.ts, heights(view.other.path, decades), "other");
  line(figure, path.ts, heights(path, decades), "main");
  upright(figure, state.t, "now");
  mark(figure, state.t, decades ? now.logLam / LN10 : now.lam, "diamond", "main");
  legend(key, figure, [...linesOf(view), ...(rests ? [["rest", "steady state *λ*_s"]] : [])]);
  return figure;
}

// q_s leaves zero with a vertical tangent, as the square root of the distance from the
// transition.
function steadyCurve(state) {
  const edge = Math.min(steady(state).critical, OMEGA_MAX);
  const grid = Array.from(
    { length: 161 },
    (_, i) => edge + (OMEGA_MAX - edge) * (i / 160) ** 2,
  );
  const omegas = [0, ...grid, ...(edge < OMEGA_MAX ? [edge + 1e-9] : [])].sort(
    (a, b) => a - b,
  );
  return [omegas, omegas.map((omega) => steady(state, omega).q)];
}

// Closer together at small omega, where the overlap depends on it most.
function reachedCurve(state) {
  const omegas = Array.from({ length: 41 }, (_, i) => OMEGA_MAX * (i / 40) ** 1.5);
  return [omegas, omegas.map((omega) => reached({ ...state, omega }))];
}

function drawSteady(holder, key, view) {
  const { state } = view;
  const figure = frame(holder, {
    room: view.room,
    x: [0, OMEGA_MAX],
    y: [0, 1],
    xLabel: "signal-to-noise ratio *ω*",
    yLabel: "steady overlap *q*_s",
    columns: ["omega", "q"],
  });
  line(figure, ...reachedCurve(state), "reached");
  if (view.other) line(figure, ...steadyCurve(view.other.state), "other");
  line(figure, ...steadyCurve(state), "main");
  const { critical, q } = view.steady;
  const inside = critical <= OMEGA_MAX;
  if (inside) {
    upright(figure, critical, "edge");
    const label = svgText(`*ω*_c = ${critical ? critical.toFixed(3) : 0}`, {
      x: figure.x(critical) + 6,
      y: figure.bottom - 8,
      class: "edge-label",
    });
    figure.over.append(label);
  }
  upright(figure, state.omega, "now");
  mark(figure, state.omega, q, "diamond", "main");
  const until = `*q* reached at *t* = ${state.t_max}`;
  legend(key, figure, [
    ...linesOf(view),
    ["reached", until],
    ...(inside ? [["edge", "transition *ω*_c"]] : []),
    ["now", "*ω* chosen"],
  ]);
  return figure;
}
