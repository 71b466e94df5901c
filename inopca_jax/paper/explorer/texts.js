// What the page says of the algorithm that is drawn: *symbols* are italic, _x is below the line.

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
    "The norm comes to rest at the leading eigenvalue *ω* + 1, and sets the gain *τ*/*λ* on its way.",
  oja: "The norm is 1 by projection and says nothing.",
  cubic: "The norm comes to rest at *ω* + 1, but no gain depends on it.",
  krasulina:
    "Steps are orthogonal to the estimate, so the norm grows at second order only, but for ever.",
  "adaptive-ino-pca":
    "The rate is *λ* times the best gain: the norm does not matter to the overlap.",
  "ada-oja": "The norm is 1 by projection and says nothing.",
  ccipca:
    "The norm comes to rest at the leading eigenvalue *ω* + 1, as fast as the rate lets it.",
};

const NORMS_BELOW = {
  "ino-pca":
    "Below the transition the norm comes to rest at (1 + √(1 + 2*τ*))/2, as on noise alone.",
  cubic: "Below the transition the norm comes to rest at 1 + *τ*/2, as on noise alone.",
};

const PORTRAITS = {
  "ino-pca":
    "The flow of (*q*, *λ*). Paths fall onto the dashed curve, which leaves the point of no learning, and run along it to rest.",
  cubic:
    "The flow of (*q*, *λ*). The gain is *τ* whatever the norm: *q* runs as Oja’s does, and the norm follows.",
  krasulina:
    "The flow of (*q*, *λ*), *λ* in powers of ten. The norm never rests: paths run up along the line *q* = *q*_s.",
  "adaptive-ino-pca":
    "The flow of (*q*, *λ*) under the oracle’s rate. The rate is zero on *q* = 1, where paths arrive as slowly as 1/*t*.",
  oja: "Projected to *λ* = 1, the flow is on a line: drawn instead is the speed d*q*/d*t* at every *q*. No gain is faster than the dotted curve.",
  "ada-oja":
    "Projected to *λ* = 1, but the rate falls as gradients add up: drawn instead is the flow of (*q*, rate), which ends in (1, 0).",
  ccipca:
    "The rate falls with time, so the arrows turn: they are those of the time *t* looked at, and crosses are where paths would rest if the rate stayed as it is then.",
};

const PORTRAITS_BELOW = {
  "ino-pca":
    "The flow of (*q*, *λ*). Below the transition every path ends without overlap.",
};

// Without a signal nothing is learnt by any of them; in what the others say omega is positive.
const below = ({ steady: rest }) => rest.q === 0;

const normNote = (view) =>
  (below(view) && NORMS_BELOW[view.state.rule]) || NORMS[view.state.rule];

const portraitNote = (view) =>
  `${(below(view) && PORTRAITS_BELOW[view.state.rule]) || PORTRAITS[view.state.rule]} Click or drag in it to start elsewhere.`;

const plainly = (text) => text.replace(/[*_]/g, "");

// The figures in words, for those who cannot see them.
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
  if (!Number.isFinite(value)) return "∞";
  const plain = value < 1e5 && (value === 0 || value >= 1e-4);
  return plain ? value.toFixed(5) : value.toExponential(4);
}
