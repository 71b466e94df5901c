// The phase portrait. Four of the algorithms are flows in the plane of (q, lam). Oja's norm
// is fixed, so its flow is on a line. AdaOja's norm is fixed too, but its rate changes with
// q, so its flow is in the plane of (q, rate). CCIPCA's rate decreases with time, so its flow
// is drawn for the chosen time.

// The vertical coordinate: its range and name, its values along a path, the flow, and whether
// the path of the second algorithm is `shared`, that is, drawn in the same portrait.
function plane(view) {
  const { state, path, other } = view;
  if (state.rule === "ada-oja") {
    return {
      y: [0, endAbove([state.tau])],
      yLabel: "rate *τ*_t",
      column: "rate",
      of: (path) => path.rate,
      flow: (q, tau) => {
        const [dq, , dbeta] = velocity(state, 0, [q, 0, 1 / tau ** 2]);
        return [dq, (-dbeta * tau ** 3) / 2];
      },
    };
  }
  const decades = state.rule === "krasulina";
  const shared = other && (decades || other.state.rule !== "krasulina");
  const norms = restingPoints(view).map((point) => point.y);
  return {
    y: normRange([path, ...(shared ? [other.path] : [])], decades, norms),
    yLabel: "norm *λ*",
    column: decades ? "log10_lam" : "lam",
    decades,
    shared,
    of: (path) => heights(path, decades),
    flow: (q, y) => {
      const logLam = decades ? y * LN10 : Math.log(y);
      const [dq, dlog] = velocity(state, state.t, [q, logLam, 1]);
      return [dq, decades ? dlog / LN10 : y * dlog];
    },
  };
}

// The fixed points of the flow. `form` says whether a point attracts, is a saddle that paths
// with q > 0 leave, or would attract at the rate of the chosen time.
function restingPoints({ state, now }) {
  const { rule } = ALGORITHMS[state.rule];
  const { omega, turning } = state;
  if (state.rule === "krasulina") return [];
  // As the rate falls, a spike that turns is lost.
  const end = turning > 0 ? 0 : 1;
  if (state.rule === "ada-oja") return omega > 0 ? [{ q: end, y: 0, form: "target" }] : [];
  if (state.rule === "adaptive-ino-pca") {
    // At q = 0 the gain is omega, and lam = 1 + omega/2 balances it.
    const { q, lam } = steady(state);
    const left = { q: 0, y: 1 + omega / 2, form: q > 0 ? "ring" : "target" };
    if (omega === 0) return [];
    return q > 0 ? [left, { q, y: lam, form: "target" }] : [left];
  }
  const frozen = state.rule === "ccipca";
  const gains = rule.gains(frozen ? now.rate : state.tau, omega, turning);
  const rest = restAt(rule, gains, omega, turning);
  const learns = omega > rest.critical;
  const attracts = frozen ? "cross" : "target";
  const points = [{ q: 0, y: rest.below, form: learns ? "ring" : attracts }];
  if (learns) points.push({ q: Math.sqrt(rest.q2), y: rest.above, form: attracts });
  if (frozen && omega > 0) points.push({ q: end, y: end * omega + 1, form: "target" });
  return points;
}

// Where the gain is the best one: a curve in the plane, [qs, ys].
function bestCurve({ state, now }, range) {
  const qs = Array.from({ length: 200 }, (_, i) => i / 200);
  const { rule } = ALGORITHMS[state.rule];
  if (state.omega === 0 || state.rule === "adaptive-ino-pca") return null;
  if (state.rule === "ada-oja") return [qs, qs.map((q) => bestGain(state.omega, q))];
  if (rule === RULES.ino) return [qs, qs.map((q) => now.rate / bestGain(state.omega, q))];
  const q2 = (state.omega - state.tau) / (state.omega * (1 + state.tau));
  return q2 > 0 ? [[Math.sqrt(q2), Math.sqrt(q2)], range] : null;
}

// Arrows of equal length at the points of a lattice, fainter where the flow is slower.
function arrows(figure, flow, lattice) {
  const found = lattice.map(([px, py]) => {
    const [q, y] = [figure.x.inverse(px), figure.y.inverse(py)];
    const [dq, dy] = flow(q, y);
    const [u, v] = [figure.x(q + dq) - px, figure.y(y + dy) - py];
    return { px, py, speed: Math.hypot(u, v), turn: (Math.atan2(v, u) * 180) / Math.PI };
  });
  const moving = found.filter(({ speed }) => speed > 0);
  const speeds = moving.map(({ speed }) => speed).sort((a, b) => a - b);
  const typical = speeds[Math.floor(speeds.length / 2)];
  moving.forEach(({ px, py, speed, turn }) => {
    const place = `translate(${px.toFixed(1)},${py.toFixed(1)}) rotate(${turn.toFixed(1)})`;
    const opacity = (0.4 + (0.6 * speed) / (speed + typical)).toFixed(2);
    const d = "M-8,0H7M3,-3L7,0L3,3";
    figure.plot.append(shape("path", { d, class: "arrow", opacity, transform: place }));
  });
}

// Points that fill an interval of pixels evenly, about `spacing` apart.
function evenly(low, high, spacing) {
  const count = Math.round((high - low) / spacing);
  return Array.from({ length: count }, (_, i) => low + ((i + 0.5) * (high - low)) / count);
}

const lattice = ({ left, right, top, bottom }) =>
  evenly(left, right, 25).flatMap((px) => evenly(top, bottom, 25).map((py) => [px, py]));

const FORMS = { target: "attracts", ring: "saddle", cross: "would attract" };

function drawPlane(holder, key, view) {
  const { state, path } = view;
  const { y, yLabel, column, of, flow, decades, shared } = plane(view);
  const figure = frame(holder, {
    room: view.room,
    x: [0, 1],
    y: view.held ?? y,
    xLabel: "overlap *q*",
    yLabel,
    columns: ["q", column],
    decades,
  });
  arrows(figure, flow, lattice(figure));
  const best = bestCurve(view, figure.y.domain);
  if (best) line(figure, ...best, "oracle");
  const points = restingPoints(view);
  const saddle = points.find((point) => point.form === "ring");
  // There is no such curve for a rate that changes with time.
  const slow = saddle && state.rule !== "ccipca" ? slowCurve(state, saddle.y) : null;
  if (slow) line(figure, slow.q, slow.lam, "slow");
  if (decades) upright(figure, view.steady.q, "rest");
  if (shared) line(figure, view.other.path.q, of(view.other.path), "other");
  const ys = of(path);
  line(figure, path.q, ys, "main");
  points.forEach((point) => mark(figure, point.q, point.y, point.form, "point"));
  const { rate, lam, logLam } = view.now;
  const [height] = of({ rate: [rate], lam: [lam], logLam: [logLam] });
  drawEnds(figure, path.q, ys, view.now.q, height);
  const forms = [...new Set(points.map((point) => point.form))];
  legend(key, figure, [
    ["main", view.name],
    ...(shared ? [["other", view.other.name]] : []),
    ...(slow ? [["slow", "curve that leaves *q* = 0"]] : []),
    ...(best ? [["oracle", "gain is the oracle’s"]] : []),
    ...(decades ? [["rest", "*q*_s"]] : []),
    ...ENDS,
    ...forms.map((form) => ["point", FORMS[form], form]),
  ]);
  return figure;
}

const ENDS = [
  ["main", "start", "dot"],
  ["main", "end", "square"],
  ["main", "at *t*", "diamond"],
];

function drawEnds(figure, xs, ys, nowX, nowY) {
  mark(figure, xs[0], ys[0], "dot", "main");
  mark(figure, xs.at(-1), ys.at(-1), "square", "main");
  mark(figure, nowX, nowY, "diamond", "main");
}

// A flow on a line, drawn as its velocity over q.
function drawLine(holder, key, view) {
  const { state, path, now } = view;
  const speed = (q) => velocity(state, 0, [q, 0, 1])[0];
  const fastest = (q) =>
    (q * state.omega ** 2 * (1 - q * q) ** 2) / (2 * variance(state.omega, q)) -
    state.turning * q;
  const qs = Array.from({ length: 201 }, (_, i) => i / 200);
  const most = Math.max(1e-3, ...qs.map(fastest), ...qs.map(speed));
  // Close to q = 1 the velocity is very negative; the axis shows only a part of it, so that
  // the rest stays visible.
  const least = Math.max(Math.min(...qs.map(speed)), -2 * most);
  const figure = frame(holder, {
    room: view.room,
    x: [0, 1],
    y: [least * 1.05, most * 1.15],
    xLabel: "overlap *q*",
    yLabel: "speed d*q*/d*t*",
    columns: ["q", "dq_dt"],
  });
  level(figure, 0, "zero");
  const axis = evenly(figure.left, figure.right, 25).map((px) => [px, figure.y(0)]);
  arrows(figure, (q) => [speed(q), 0], axis);
  line(figure, qs, qs.map(fastest), "oracle");
  line(figure, qs, qs.map(speed), "slow");
  line(figure, path.q, path.q.map(speed), "main");
  const learns = view.steady.q > 0;
  mark(figure, 0, 0, learns ? "ring" : "target", "point");
  if (learns) mark(figure, view.steady.q, 0, "target", "point");
  drawEnds(figure, path.q, path.q.map(speed), now.q, speed(now.q));
  legend(key, figure, [
    ["main", view.name],
    ["slow", "from any *q*"],
    ["oracle", "the oracle’s speed"],
    ...ENDS,
    ...(learns ? [["point", "repels", "ring"]] : []),
    ["point", FORMS.target, "target"],
  ]);
  return figure;
}

const drawPortrait = (holder, key, view) =>
  (view.state.rule === "oja" ? drawLine : drawPlane)(holder, key, view);
