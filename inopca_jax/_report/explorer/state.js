// The state of the page, which its controls and the hash of its address both hold, and the
// view that is drawn from it.

const SLIDERS = {
  tau: { symbol: "*τ*", words: "learning rate", min: 0.02, max: 2, step: 0.01, value: 0.5 },
  omega: {
    symbol: "*ω*",
    words: "signal to noise",
    min: 0,
    max: OMEGA_MAX,
    step: 0.01,
    value: 1,
  },
  turning: {
    symbol: "*δ*",
    words: "turning of the spike",
    min: 0,
    max: 0.5,
    step: 0.005,
    value: 0,
  },
  lam0: { symbol: "*λ*_0", words: "initial norm", min: 0.1, max: 5, step: 0.01, value: 1 },
  q0: { symbol: "*q*_0", words: "initial overlap", min: 0, max: 1, step: 0.01, value: 0.1 },
  amnesic: { symbol: "*l*", words: "amnesic number", min: 0, max: 8, step: 0.1, value: 4 },
  t_max: { symbol: "*T*", words: "last time", min: 5, max: 200, step: 5, value: 50 },
  t: { symbol: "*t*", words: "chosen time", min: 0, max: 200, step: 0.1, value: 10 },
};

// The second algorithm: any of the others, or the paper's fair comparison, Oja's method at
// the rate with INO-PCA's steady overlap.
const BESIDE = { none: "nothing", ...NAMES, "oja-slow": "Oja at rate τ/(1+ω)" };

const DEFAULTS = {
  rule: "ino-pca",
  beside: "none",
  ...Object.fromEntries(Object.entries(SLIDERS).map(([name, { value }]) => [name, value])),
};

// A valid state: values out of range are moved to its ends, and values that are not numbers
// are ignored.
function valid(wanted, before) {
  const next = { ...before };
  if (Object.hasOwn(NAMES, wanted.rule ?? "")) next.rule = wanted.rule;
  if (Object.hasOwn(BESIDE, wanted.beside ?? "")) next.beside = wanted.beside;
  Object.entries(SLIDERS).forEach(([name, { min, max }]) => {
    const value = Number.parseFloat(wanted[name]);
    if (Number.isFinite(value)) next[name] = clamp(value, min, max);
  });
  next.t = Math.min(next.t, next.t_max);
  return next;
}

const toHash = (state) => `#${new URLSearchParams(state)}`;
const fromHash = (hash) => Object.fromEntries(new URLSearchParams(hash.slice(1)));

function besideOf(state) {
  if (state.beside === "none") return null;
  if (state.beside !== "oja-slow") {
    const other = { ...state, rule: state.beside };
    return { state: other, name: NAMES[state.beside], path: path(other) };
  }
  const [tau] = RULES.ino.gains(state.tau, state.omega, state.turning);
  const other = { ...state, rule: "oja", tau };
  return { state: other, name: `Oja at rate ${tau.toPrecision(3)}`, path: path(other) };
}

function momentOf(state) {
  const at = pathAt(state, [state.t]);
  return Object.fromEntries(Object.entries(at).map(([name, values]) => [name, values[0]]));
}

// `held` is the range of the portrait's vertical axis while the pointer is dragged in it:
// otherwise the axis would change under the pointer.
const viewOf = (state, { room, held } = {}) => ({
  state,
  room,
  held,
  name: NAMES[state.rule],
  path: path(state),
  now: momentOf(state),
  steady: steady(state),
  other: besideOf(state),
});

const numbersOf = ({ state, now, steady: rest }) => ({
  q_s: rest.q,
  lam_s: rest.lam,
  omega_c: rest.critical,
  q_t: now.q,
  lam_t: now.lam,
  gain: now.gain,
  best_gain: bestGain(state.omega, now.q),
  oracle: oracleAt(state, [state.t])[0],
  offline: state.turning === 0 ? offline(state.omega, state.t) : null,
  best_lam0: bestNorm(state),
  best_rate: bestRate(state),
});

// What the sliders of the rate and the norm do for the algorithms that are drawn: nothing if
// `idle`, or something special.
function roles(state) {
  const drawn = [state.rule, state.beside].filter((rule) => rule !== "none");
  const offset = harmonicOffset(state).toPrecision(3);
  const own = {
    ccipca: `CCIPCA’s rate is *τ* at *t* = 0 and falls as (1 + *l*)/(*t* + *t*_0), so *t*_0 = (1 + *l*)/*τ* = ${offset}.`,
    "ada-oja": `AdaOja’s rate is *τ* at *t* = 0 and falls as squared gradients add up, so *b*_0 = *p*/*τ* = ${(1 / state.tau).toPrecision(3)} *p*.`,
  };
  const rated = drawn.filter((rule) => rule !== "adaptive-ino-pca");
  const notes = rated.map((rule) => own[rule]).filter(Boolean);
  const projectedOnly = drawn.every((rule) =>
    ["oja", "ada-oja", "oja-slow"].includes(rule),
  );
  return {
    amnesic: {
      hidden: !drawn.includes("ccipca"),
      note: "In the long run CCIPCA’s rate is (1 + *l*)/*t*.",
    },
    tau: rated.length
      ? {
          words: notes.length === rated.length ? "initial learning rate" : undefined,
          note: notes.join(" "),
        }
      : { idle: true, note: "the oracle sets the rate" },
    lam0: projectedOnly ? { idle: true, note: "projected to *λ* = 1 at once" } : {},
  };
}
