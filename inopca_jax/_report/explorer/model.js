// The mean field: the equations of the overlap q and the norm lam in the limit of large p,
// and their steady state.
//
// Every algorithm here is x' = (1 - h/p) x + (nu/p) (y.x) y, some projected back to
// |x| = sqrt(p). A rule turns a learning rate tau into the gain nu and the decay h; a
// schedule supplies tau. With s2 = omega q^2 + 1, the variance of the sample along x,
//
//     dq/dt   = nu q [omega (1 - q^2) - nu s2/2] - delta q
//     dlam/dt = lam [nu s2 + nu^2 s2/2 - E h]      (0 for a rule that projects),
//
// where the spike turns at the rate delta.

const variance = (omega, q) => omega * q * q + 1;

// The gain at which dq/dt, a parabola in nu, is largest: eq:optimal_nu_t of the paper.
const bestGain = (omega, q) => (omega * (1 - q * q)) / variance(omega, q);

// `decay` is the mean E h over samples; only Krasulina's h = tau S^2 depends on the sample.
// `gains` are those at rest with an overlap, and without one. `norm` is that at rest, given
// the growth s2 (1 + nu/2) over the gain.
const RULES = {
  ino: {
    gain: (tau, lam) => tau / lam,
    decay: (tau) => tau,
    projects: false,
    gains: (tau, omega, turning) => [
      (tau + turning) / (1 + omega),
      (2 * tau) / (1 + Math.sqrt(1 + 2 * tau)), // sqrt(1 + 2 tau) - 1 without cancellation
    ],
    norm: (growth) => growth,
  },
  oja: {
    gain: (tau) => tau,
    decay: () => 0,
    projects: true,
    gains: (tau) => [tau, tau],
    norm: () => 1,
  },
  cubic: {
    gain: (tau) => tau,
    decay: (tau, lam) => tau * lam,
    projects: false,
    gains: (tau) => [tau, tau],
    norm: (growth) => growth,
  },
  krasulina: {
    gain: (tau) => tau,
    decay: (tau, lam, s2) => tau * s2,
    projects: false,
    gains: (tau) => [tau, tau],
    norm: () => Infinity,
  },
};

// Without a gain a spike that turns is lost at once.
const lagOf = (turning, gain) => (turning > 0 ? turning / gain : 0);

// The steady state: the transition omega_c, q^2 above it, and lam above and below.
function restAt(rule, [gain, gainAtZero], omega, turning) {
  const lag = lagOf(turning, gain);
  return {
    critical: gainAtZero / 2 + lagOf(turning, gainAtZero),
    q2: (2 * omega - gain - 2 * lag) / (omega * (2 + gain)),
    above: rule.norm(1 + omega - lag),
    below: rule.norm(1 + gainAtZero / 2),
  };
}

// The rate of INO-PCA with the largest steady overlap, and the gain that it then has, which
// is also the best rate of the other rules.
const bestInoRate = (omega, turning) => Math.sqrt(turning * (turning + 2 * (1 + omega)));
const bestSteadyGain = (omega, turning) =>
  (turning + bestInoRate(omega, turning)) / (1 + omega);

function bestRate({ rule: name, omega, turning }) {
  const { rule, schedule } = ALGORITHMS[name];
  if (schedule !== SCHEDULES.constant || !(omega ** 2 > 2 * turning && turning > 0))
    return null;
  return (rule === RULES.ino ? bestInoRate : bestSteadyGain)(omega, turning);
}

// Decreasing schedules begin at the rate tau, so that one slider sets them all and the limit
// is regular. At an initial rate of order p, as for CCIPCA counted from its first sample or
// for AdaOja with a small b0, one sample replaces the start and the ODE is singular at t = 0.
const SCHEDULES = {
  constant: { rate: (state) => state.tau, falls: false },
  harmonic: {
    rate: (state, t) => (1 + state.amnesic) / (t + harmonicOffset(state)),
    falls: true,
  },
  adagrad: { rate: (state, t, q, lam, beta) => 1 / Math.sqrt(beta), falls: true },
  // INO-PCA's gain is tau/lam, so this is the rate whose gain is the best one.
  oracle: { rate: (state, t, q, lam) => lam * bestGain(state.omega, q), falls: true },
};

// t0 of CCIPCA(amnesic, t0), whose rate (1 + amnesic)/(t + t0) is tau at t = 0.
const harmonicOffset = (state) => (1 + state.amnesic) / state.tau;

const ALGORITHMS = {
  "ino-pca": { rule: RULES.ino, schedule: SCHEDULES.constant },
  oja: { rule: RULES.oja, schedule: SCHEDULES.constant },
  cubic: { rule: RULES.cubic, schedule: SCHEDULES.constant },
  krasulina: { rule: RULES.krasulina, schedule: SCHEDULES.constant },
  "adaptive-ino-pca": { rule: RULES.ino, schedule: SCHEDULES.oracle },
  "ada-oja": { rule: RULES.oja, schedule: SCHEDULES.adagrad },
  ccipca: { rule: RULES.ino, schedule: SCHEDULES.harmonic },
};

const rateAt = (state, t, q, lam, beta) =>
  ALGORITHMS[state.rule].schedule.rate(state, t, q, lam, beta);

const gainAt = (state, t, q, lam, beta) =>
  ALGORITHMS[state.rule].rule.gain(rateAt(state, t, q, lam, beta), lam);

// d(q, log lam, beta)/dt. The logarithm, because Krasulina's norm grows exponentially and a
// small initial norm grows fast; beta, AdaGrad's state, is part of every algorithm's state.
function velocity(state, t, [q, logLam, beta]) {
  const { rule } = ALGORITHMS[state.rule];
  const lam = Math.exp(logLam);
  const s2 = variance(state.omega, q);
  const tau = rateAt(state, t, q, lam, beta);
  const nu = rule.gain(tau, lam);
  const pull = nu * q * (state.omega * (1 - q * q) - (nu * s2) / 2);
  const turn = pull - state.turning * q;
  const stretch = nu * s2 + (nu * nu * s2) / 2 - rule.decay(tau, lam, s2);
  return [turn, rule.projects ? 0 : stretch, s2];
}

// AdaGrad's beta is (b0/p)^2 at the start, and its rate 1/sqrt(beta).
const begin = (state) => [
  state.q0,
  ALGORITHMS[state.rule].rule.projects ? 0 : Math.log(state.lam0),
  1 / state.tau ** 2,
];

// Dormand and Prince's pair of orders 5 and 4. The last row of A is the step itself, and the
// slope at its end is the first slope of the next step.
const NODES = [0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1, 1];
const A = [
  [],
  [1 / 5],
  [3 / 40, 9 / 40],
  [44 / 45, -56 / 15, 32 / 9],
  [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729],
  [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656],
  [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84],
];
const ERROR = [71 / 57600, 0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40];

// y + length (w_0 slopes_0 + w_1 slopes_1 + ...), in a plain loop: it is most of the work.
function moved(y, slopes, weights, length) {
  let [a, b, c] = y;
  for (let j = 0; j < weights.length; j++) {
    const w = length * weights[j];
    a += w * slopes[j][0];
    b += w * slopes[j][1];
    c += w * slopes[j][2];
  }
  return [a, b, c];
}

function attempt(field, t, y, first, length) {
  const slopes = [first];
  let next = y;
  for (let stage = 1; stage < 7; stage++) {
    next = moved(y, slopes, A[stage], length);
    slopes.push(field(t + NODES[stage] * length, next));
  }
  return { next, last: slopes[6], error: moved([0, 0, 0], slopes, ERROR, length) };
}

// The error of q is relative, however small q is: early on q grows by a factor, and its error
// with it. The error of the logarithm is absolute.
const excess = (error, [q, , beta], tolerance) =>
  Math.max(
    Math.abs(error[0]) / (Math.abs(q) + 1e-6),
    Math.abs(error[1]),
    Math.abs(error[2]) / beta,
  ) / tolerance;

// Integrates from t0 to t1, calls `visit(t, y)` after every step and returns the state at t1.
// With `rests` it stops where the state hardly moves, because there the steps of an explicit
// method stay short.
function follow(field, y, t0, t1, options = {}) {
  const { tolerance = 1e-10, longest = Infinity, visit, rests = false } = options;
  let t = t0;
  let length = Math.min(1e-3, longest);
  let slope = field(t, y);
  while (t < t1 && !(rests && Math.hypot(slope[0], slope[1]) < 1e-6)) {
    // A last step within rounding of the end goes to the end itself.
    const ends = t + length >= t1 * (1 - 1e-15);
    const step = ends ? t1 - t : length;
    const { next, last, error } = attempt(field, t, y, slope, step);
    const size = excess(error, next, tolerance);
    if (size <= 1) {
      t = ends ? t1 : t + step;
      y = next;
      slope = last;
      if (visit) visit(t, y);
    }
    // The size is NaN if the step was so long that a number overflowed.
    const factor = Number.isNaN(size) ? 0.1 : 0.9 * Math.max(size, 1e-9) ** -0.2;
    length = Math.min(longest, step * Math.min(4, Math.max(0.1, factor)));
    if (length < 1e-14) throw new Error(`no step from t = ${t} is short enough`);
  }
  return y;
}

function asPath(state, ts, states) {
  const lam = states.map((y) => Math.exp(y[1]));
  return {
    ts,
    q: states.map((y) => y[0]),
    lam,
    logLam: states.map((y) => y[1]),
    rate: states.map((y, i) => rateAt(state, ts[i], y[0], lam[i], y[2])),
    gain: states.map((y, i) => gainAt(state, ts[i], y[0], lam[i], y[2])),
  };
}

// The path at every step of the solver, which are dense where it curves.
function path(state) {
  const field = (t, y) => velocity(state, t, y);
  const ts = [0];
  const states = [begin(state)];
  const visit = (t, y) => (ts.push(t), states.push(y));
  follow(field, states[0], 0, state.t_max, { longest: state.t_max / 240, visit });
  return asPath(state, ts, states);
}

// The path at increasing times, each of which ends a step, so nothing is interpolated.
function pathAt(state, ts) {
  const field = (t, y) => velocity(state, t, y);
  let [t0, y] = [0, begin(state)];
  const states = ts.map((t) => {
    y = t > t0 ? follow(field, y, t0, t) : y;
    t0 = Math.max(t, t0);
    return y;
  });
  return asPath(state, ts, states);
}

// The overlap at t_max, to less than the width of a line. Rules with the gain tau have that
// of Oja's method, which needs no norm.
function reached(state) {
  const { rule } = ALGORITHMS[state.rule];
  const asOja = rule === RULES.cubic || rule === RULES.krasulina;
  const alike = asOja ? { ...state, rule: "oja" } : state;
  const field = (t, y) => velocity(alike, t, y);
  return follow(field, begin(alike), 0, state.t_max, { tolerance: 1e-7, rests: true })[0];
}

// The unstable manifold of the fixed point (0, lam), up to the steady state: the curve that
// all paths approach before they reach the steady state.
function slowCurve(state, lam) {
  const field = (t, y) => velocity(state, t, y);
  const states = [[1e-4, Math.log(lam), 1 / state.tau ** 2]];
  const visit = (t, y) => states.push(y);
  // In units of the time in which q grows by a factor e. With a gain that falls to zero, q
  // converges as 1/t only. Near the transition the unit is arbitrarily long, and the curve
  // short.
  const grows = field(0, states[0])[0] / states[0][0];
  const units = ALGORITHMS[state.rule].schedule.falls ? 1000 : 25;
  follow(field, states[0], 0, Math.min(units / grows, 4000), { tolerance: 1e-6, visit });
  return { q: states.map((y) => y[0]), lam: states.map((y) => Math.exp(y[1])) };
}

// The steady state of a rate that decreases to zero is the limit of small constant rates.
// The oracle's gain goes to zero only if the spike stands still.
function steady(state, omega = state.omega) {
  const { rule, schedule } = ALGORITHMS[state.rule];
  const { turning } = state;
  const isOracle = schedule === SCHEDULES.oracle;
  const gains = isOracle
    ? [bestSteadyGain(omega, turning), omega]
    : rule.gains(schedule.falls ? 0 : state.tau, omega, turning);
  const rest = restAt(rule, gains, omega, turning);
  const critical = isOracle ? Math.sqrt(2 * turning) : rest.critical;
  const learns = omega > critical;
  return {
    q: learns ? Math.sqrt(Math.max(rest.q2, 0)) : 0,
    lam: learns ? rest.above : rest.below,
    critical,
  };
}

// The overlap of PCA on all n = p t samples so far. No algorithm that uses these samples
// alone does better; one that begins with an overlap does, for a while.
function offline(omega, t) {
  const information = omega * omega * t;
  return information > 1 ? Math.sqrt((information - 1) / (information + omega)) : 0;
}

// The overlap that the best gain reaches from q0. With z = q^2 its equation integrates to
// log(z/(1-z)) + (omega+1)/(1-z) = omega^2 t + const; in f = log((omega+1) z/(1-z)) that is
// f + e^f = level, convex and increasing, so Newton's iterates from the right come down.
function oracle(omega, q0, t) {
  if (q0 <= 0 || q0 >= 1) return q0;
  const z0 = q0 * q0;
  const f0 = Math.log(((omega + 1) * z0) / (1 - z0));
  const level = f0 + Math.exp(f0) + omega * omega * t;
  let f = level > 1 ? Math.log(level) : level;
  for (let i = 0; i < 8; i++) f -= (f + Math.exp(f) - level) / (1 + Math.exp(f));
  return Math.sqrt(1 / (1 + (omega + 1) * Math.exp(-f)));
}

// The same at increasing times, also of a spike that turns, for which there is no formula.
function oracleAt(state, ts) {
  const { omega, q0, turning } = state;
  if (turning === 0) return ts.map((t) => oracle(omega, q0, t));
  return pathAt({ ...state, rule: "adaptive-ino-pca" }, ts).q;
}

// The initial norm at which INO-PCA's gain tau/lam0 is the best one; tau/omega at q0 = 0.
const bestNorm = (state) => state.tau / bestGain(state.omega, state.q0);
