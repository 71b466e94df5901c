"""Theory of AdaOja and CCIPCA beside INO-PCA, Oja's method and the oracle.

Left the algorithms with a regular limit, from q0 = 0.1: CCIPCA counts from t0 = 2 and
AdaOja from b0 = p, so that the start is remembered; lines are the mean field, points 20
trials of the exact chain with one standard deviation. Right |q| of the two as published:
their first samples outweigh the start, which the limit then forgets, so the lines are
averages over what chance leaves of it (bars of one-third standard deviation). Grey is what
PCA on all samples so far would reach.
"""

import jax.random as jr
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .. import plot
from .._batch import simulate
from .._config import Config
from .._order_parameters import offline_overlap, oracle_overlap
from .._rule import CCIPCA, AdaOja, AdaptiveInoPCA, InoPCA, Oja
from ..plot import Curve, offline_limit, style
from .claim import Claim, verdict
from .cold_start import cold_law
from .curves import OMEGA, TAU, TRIALS, Arrays, P, curves, learned, setting, trajectory

T_MAX, POINTS = 30.0, 61
ORACLE, PUBLISHED = "oracle", ("AdaOja, as published", "CCIPCA, as published")
# What an ODE in single precision may be off by; standard errors that are sure.
ROUNDING, SURE = 1e-4, 4.0
LATE = 1000.0


def configs(quick: bool = False) -> dict[str, Config]:
    """The algorithms with a regular limit, then those without."""
    rules = {
        "INO-PCA": InoPCA(TAU),
        "Oja": Oja(TAU),
        ORACLE: AdaptiveInoPCA(),
        "AdaOja, $b_0 = p$": AdaOja(float(P)),
        "CCIPCA, $t_0 = 2$": CCIPCA(t0=2.0),
        PUBLISHED[0]: AdaOja(),
        PUBLISHED[1]: CCIPCA(),
    }
    made = lambda rule: setting(rule, t_max=T_MAX, points=POINTS)
    return {name: made(rule) for name, rule in rules.items()}


def compute(quick: bool = False) -> Arrays:
    """Theory and trials of all; of those as published with the signs that trials end on."""
    cases = configs(quick)
    regular = {name: cases[name] for name in cases if name not in PUBLISHED}
    found = learned(regular, trials=TRIALS, seed=7)
    for number, name in enumerate(PUBLISHED):
        config, key = cases[name], jr.fold_in(jr.key(8), number)
        runs = simulate(config, key=key, trials=32 if quick else 128)
        law, gain = cold_law(config)
        found[f"{name}/gain"] = np.asarray(gain)
        found[f"{name}/last"] = np.asarray(runs.q[:, -1])
        for kind, run in (("runs", runs.abs()), ("theory", law)):
            fields = {x: getattr(run, x) for x in ("ts", "q", "lam")}
            found |= {f"{name}/{kind}/{k}": np.asarray(v) for k, v in fields.items()}
    return found


def draw(found: Arrays) -> Figure:
    """Regular limits, and the published algorithms."""
    with style():
        figure, axes = plt.subplots(1, 2, figsize=(8.4, 3.6), sharey=True)
        for ax in axes:
            offline_limit(ax, OMEGA, np.linspace(0, T_MAX, 301))
            ax.set(xlabel=r"time $t = k/p$")
            ax.margins(x=0.02)
        shown = {curve.label: (i, curve) for i, curve in enumerate(curves(found))}
        for name, (i, curve) in shown.items():
            if name not in PUBLISHED:
                plot.draw(axes[0], curve, "q", index=i)
        for i, name in ((shown[ORACLE][0], ORACLE), (3, PUBLISHED[0]), (4, PUBLISHED[1])):
            runs = None if name == ORACLE else trajectory(found, f"{name}/runs")
            theory = trajectory(found, f"{name}/theory")
            plot.draw(axes[1], Curve(name, theory, runs), "q", bars=1 / 3, index=i)
        axes[0].set(ylabel=r"overlap $q_t$", title="with a regular limit")
        axes[1].set(ylabel=r"$|q_t|$", title="as published")
        for ax in axes:
            _short_legend(ax)
    return figure


def _short_legend(ax: Axes) -> None:
    """The lines alone: points are of the line's colour."""
    handles, labels = ax.get_legend_handles_labels()
    kept = {x.removesuffix(", theory"): h for h, x in zip(handles, labels, strict=True)}
    kept = {x: h for x, h in kept.items() if "trials" not in x}
    ax.legend(list(kept.values()), [x.removesuffix(", as published") for x in kept])


def claims(found: Arrays) -> list[Claim]:
    """What the paper says of the class of updates, of its rivals and of warm starts."""
    return [
        _none_exceeds(found),
        _outperforms(found),
        _less_influence(found),
        _keeps_sign(found),
        _as_good_as_offline(),
    ]


def _regular(found: Arrays) -> dict[str, np.ndarray]:
    names = [n for n in configs() if n not in PUBLISHED]
    return {name: found[f"{name}/theory/q"].astype(float) for name in names}


def _plain(name: str) -> str:
    return name.replace("$", "").replace("_", "")


def _none_exceeds(found: Arrays) -> Claim:
    paths = _regular(found)
    excess = {n: float(np.max(q - paths[ORACLE])) for n, q in paths.items() if n != ORACLE}
    last = {n: float(q[-1] / paths[ORACLE][-1]) for n, q in paths.items() if n != ORACLE}
    most, best = max(excess, key=excess.__getitem__), max(last, key=last.__getitem__)
    return Claim(
        "Remark after eq:optimal_nu_t",
        "the oracle characterizes the best achievable dynamics within this class",
        excess[most],
        ROUNDING,
        f"in theory no algorithm exceeds the oracle's overlap at any time by more than "
        f"{excess[most]:.1e}; the closest at t = {T_MAX:g} is {_plain(best)}, with "
        f"{last[best]:.1%} of it",
        verdict(excess[most] < ROUNDING),
        "holds",
        "dq/dt depends on the rule through the gain alone and is largest at the oracle's: "
        "by comparison of ODEs no path from the same q0 overtakes it.",
    )


def _outperforms(found: Arrays) -> Claim:
    paths, ts = _regular(found), found["INO-PCA/theory/ts"]
    paths |= {name: found[f"{name}/theory/q"].astype(float) for name in PUBLISHED}
    ours, _ = paths.pop("INO-PCA"), paths.pop(ORACLE)
    ahead = {name: ours[1:] > q[1:] for name, q in paths.items()}
    share = {name: float(np.mean(x)) for name, x in ahead.items()}
    since = ahead_since(ts[1:], ahead["Oja"])
    told = "; ".join(
        f"{share[n]:.0%} of {_plain(n)} ({q[-1]:.3f})" for n, q in paths.items()
    )
    always, in_the_end = min(share.values()) == 1, bool(ahead["Oja"][-1])
    return Claim(
        "Contributions",
        "INO-PCA consistently outperforms classical online PCA algorithms, achieves both "
        "fast initial learning and strong steady-state accuracy",
        share["Oja"],
        0.0,
        f"from q0 = 0.1, lam0 = 1 up to t = {T_MAX:g}, where it ends at {ours[-1]:.3f}, "
        f"its overlap is ahead for this part of the time (of rivals that end at): {told}; "
        f"of Oja's {'not' if since is None else f'from t = {since:g} on'}",
        verdict(always, "holds with a condition" if in_the_end else "does not hold"),
        "holds with a condition",
        "Against Oja's method at the same constant rate, in the end. On a spike that "
        "stays, rates that fall go on to improve where a constant one rests.",
    )


def ahead_since(ts: np.ndarray, ahead: np.ndarray) -> float | None:
    """The first of the times from which on one is always ahead; None if it ends behind."""
    behind = np.flatnonzero(~ahead)
    first = behind[-1] + 1 if behind.size else 0
    return float(ts[first]) if first < len(ts) else None


def _less_influence(found: Arrays) -> Claim:
    ts = found[f"{PUBLISHED[0]}/theory/ts"].astype(float)
    late, gains = (
        ts >= T_MAX / 2,
        [found[f"{name}/gain"].astype(float) for name in PUBLISHED],
    )
    powers = [float(np.polyfit(np.log(ts[late]), np.log(x[late]), 1)[0]) for x in gains]
    return Claim(
        "Adaptive INO-PCA vs. representative baselines",
        "AdaOja and CCIPCA progressively reduce the influence of new samples over time",
        max(powers),
        0.0,
        f"their gains fall as t to the {powers[0]:.2f} (AdaOja) and {powers[1]:.2f} "
        f"(CCIPCA) over the second half of the time, to {gains[0][-1]:.3f} and "
        f"{gains[1][-1]:.3f} at t = {T_MAX:g}; INO-PCA's tends to tau/(omega + 1) = "
        f"{TAU / (OMEGA + 1):g}",
        verdict(max(powers) < -0.3),
        "holds",
        "AdaGrad's rate is 1/sqrt of a sum that grows as t, CCIPCA's c/t over a norm that "
        "settles: powers of -1/2 and -1 in the end, and more while q and lam still grow.",
    )


def _keeps_sign(found: Arrays) -> Claim:
    shares = [float(np.mean(found[f"{name}/last"] < 0)) for name in PUBLISHED]
    trials = len(found[f"{PUBLISHED[0]}/last"])
    regular = [n for n in configs() if n not in PUBLISHED]
    turned = sum(int(np.sum(found[f"{n}/runs/q"][:, -1] < 0)) for n in regular)
    forgets = min(shares) > 0.5 - SURE / 2 / trials**0.5
    found_some = "holds with a condition" if turned == 0 and forgets else "does not hold"
    return Claim(
        "Initialization",
        "any modest positive alignment suffices to break the sign symmetry of the problem",
        min(shares),
        0.5 / trials**0.5,
        f"from q0 = 0.1 at p = 10,000 {shares[0]:.2f} of {trials} trials of AdaOja and "
        f"{shares[1]:.2f} of CCIPCA, as published, end with q < 0; of the others {turned} "
        f"of {TRIALS * len(regular)}",
        verdict(turned == 0 and max(shares) == 0, found_some),
        "holds with a condition",
        "Not for AdaOja with a small b0 and CCIPCA counted from its first sample: these "
        "forget the start at once, settle on either sign, and |q| has to be reported.",
    )


def _as_good_as_offline() -> Claim:
    left = lambda q: 1 - float(q) ** 2
    ratios = [
        left(oracle_overlap(OMEGA, 0.1, t)) / left(offline_overlap(OMEGA, t))
        for t in (T_MAX, LATE)
    ]
    return Claim(
        "beyond the paper",
        "the oracle is asymptotically as good as PCA on all samples so far",
        ratios[1],
        0.05,
        f"1 - q^2 of the oracle over that of offline PCA is {ratios[0]:.2f} at t = "
        f"{T_MAX:g} and {ratios[1]:.4f} at t = {LATE:g}",
        verdict(1 <= ratios[1] < 1.05),
        "holds",
        "Both have 1 - q^2 = (1 + omega)/(omega^2 t) for large t: one pass with the best "
        "gain loses nothing at leading order.",
    )
