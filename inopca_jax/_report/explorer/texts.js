// The page's texts about the chosen algorithm: *symbols* are italic, _x is a subscript.

const EQUATIONS = {
  "ino-pca": "gain *ν* = *τ*/*λ*, decay *h* = *τ*",
  oja: "gain *ν* = *τ*, and projected to *λ* = 1",
  cubic: "gain *ν* = *τ*, decay *h* = *τλ*",
  krasulina: "gain *ν* = *τ*, decay *h* = *τS*², of mean *τ*(*ωq*² + 1)",
  "adaptive-ino-pca": "gain *ν* = *ν̂* = *ω*(1 − *q*²)/(*ωq*² + 1), decay *h* = *λν̂*",
  "ada-oja":
    "gain *ν* = 1/√*β*, d*β*/d*t* = *ωq*² + 1 from *β*_0 = (*b*_0/*p*)², and projected to *λ* = 1",
  ccipca: "gain *ν* = *τ*_t/*λ*, decay *h* = *τ*_t = (1 + *l*)/(*t* + *t*_0)",
};

const NORMS = {
  "ino-pca":
    "The norm converges to the leading eigenvalue *ω* + 1, and determines the gain *τ*/*λ*.",
  oja: "The norm is always 1, by projection.",
  cubic: "The norm converges to *ω* + 1, but the gain does not depend on it.",
  krasulina:
    "Steps are orthogonal to the estimate, so the norm grows at second order only, but without end.",
  "adaptive-ino-pca":
    "The rate is *λ* times the best gain, so the overlap does not depend on the norm.",
  "ada-oja": "The norm is always 1, by projection.",
  ccipca:
    "The norm converges to the leading eigenvalue *ω* + 1, at a speed that the rate sets.",
};

const NORMS_BELOW = {
  "ino-pca":
    "Below the transition the norm converges to (1 + √(1 + 2*τ*))/2, as on noise alone.",
  cubic: "Below the transition the norm converges to 1 + *τ*/2, as on noise alone.",
};

const PORTRAITS = {
  "ino-pca":
    "The flow of (*q*, *λ*). Paths approach the dashed curve, which begins at the fixed point without overlap, and follow it to the steady state.",
  cubic:
    "The flow of (*q*, *λ*). The gain is *τ* for every norm, so *q* moves as for Oja’s method, and the norm follows.",
  krasulina:
    "The flow of (*q*, *λ*), *λ* on a logarithmic axis. The norm grows without end along the line *q* = *q*_s.",
  "adaptive-ino-pca":
    "The flow of (*q*, *λ*) at the oracle’s rate. The rate is zero at *q* = 1, which paths approach as 1/*t*.",
  oja: "The norm is projected to *λ* = 1, so the velocity d*q*/d*t* over *q* is drawn instead. No gain is faster than the dotted curve.",
  "ada-oja":
    "The norm is projected to *λ* = 1, and the rate decreases as squared gradients add up, so the flow of (*q*, rate) is drawn instead. It ends at (1, 0).",
  ccipca:
    "The rate decreases with time, so the arrows change. They are drawn for the chosen time *t*; crosses mark the fixed points at the rate of that time.",
};

const PORTRAITS_BELOW = {
  "ino-pca":
    "The flow of (*q*, *λ*). Below the transition every path ends without overlap.",
};

const NORMS_TURNING = {
  "ino-pca":
    "The norm converges to (1 + *ω*)*τ*/(*τ* + *δ*), and determines the gain *τ*/*λ*.",
  cubic:
    "The norm converges to 1 + *ω* − *δ*/*τ*, but the gain does not depend on it.",
  ccipca: "As the rate falls the spike that turns is lost, and the norm converges to 1.",
};

const PORTRAITS_TURNING = {
  "adaptive-ino-pca":
    "The flow of (*q*, *λ*) at the oracle’s rate, whose gain settles at that of the best constant rate.",
  "ada-oja":
    "The norm is projected to *λ* = 1, and the rate decreases as squared gradients add up, so the flow of (*q*, rate) is drawn instead. It ends at (0, 0): a rate that falls loses a spike that turns.",
};

// No algorithm learns without a signal; the texts above are for omega > 0.
const below = ({ steady: rest }) => rest.q === 0;

const normNote = (view) =>
  (below(view) && NORMS_BELOW[view.state.rule]) ||
  (view.state.turning > 0 && NORMS_TURNING[view.state.rule]) ||
  NORMS[view.state.rule];

function portraitNote(view) {
  const { rule, turning } = view.state;
  const note =
    (below(view) && PORTRAITS_BELOW[rule]) ||
    (turning > 0 && PORTRAITS_TURNING[rule]) ||
    PORTRAITS[rule];
  return `${note} Click or drag in the figure to choose the start.`;
}

const plainly = (text) => text.replace(/[*_]/g, "");

// The figures in words, for screen readers.
function inWords(view) {
  const { name, state, steady: rest } = view;
  const run = (values) =>
    `${name} goes from ${written(values[0])} to ${written(values.at(-1))} at t = ${state.t_max}.`;
  return {
    overlap: `Overlap over time: ${run(view.path.q)}`,
    norm: `Norm over time: ${run(view.path.lam)}`,
    portrait: `Phase portrait of ${name}. ${plainly(portraitNote(view))}`,
    steady: `Steady overlap over omega: zero up to ${written(rest.critical)}, ${written(rest.q)} at omega = ${state.omega}.`,
  };
}

function written(value) {
  if (value === null) return "none";
  if (!Number.isFinite(value)) return "∞";
  const plain = value < 1e5 && (value === 0 || value >= 1e-4);
  return plain ? value.toFixed(5) : value.toExponential(4);
}
