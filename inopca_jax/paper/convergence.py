"""How simulation converges to theory as p grows.

Left the distance of the mean of INO-PCA's overlap from the ODE at a fixed time, right the
standard deviations of the overlap and the norm over trials. Points are the exact chain's,
with standard errors, dashed lines what `fluctuations` predicts, without a fit: order 1/p
and order 1/sqrt(p).
"""

from typing import Any

import jax.random as jr
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .._batch import simulate
from .._config import Config
from .._model import SpikedModel
from .._order_parameters import fluctuations
from .._rule import InoPCA
from .._start import WarmStart
from ..plot import COLOURS, MARKERS, style
from .claim import Claim, verdict
from .curves import OMEGA, TAU, Arrays, P

Q0, TIME = 0.4, 3.0
# Dimensions and trials: enough to see a gap of order 1/p in a mean that scatters by
# 1/sqrt(p) takes trials in proportion to p, so the largest shows the scatter alone.
FULL = {50: 20_480, 200: 20_480, 800: 20_480, 3200: 14_336, 1_000_000: 32}
QUICK = {200: 8192, 800: 8192}
MOST_FOR_MEANS = 3200
# Below this the next orders in 1/p show, above the slopes are fitted.
LEAST_FOR_SLOPES = 200
# By how much a slope may differ from its limit apart from four standard errors: what the
# next order in 1/p, of 10 % at p = 200, does to it.
SURE, CURVED = 4.0, 0.08
MIRROR = 200


def configs(quick: bool = False) -> dict[str, Config]:
    """By dimension; and the mirror image of one of them."""

    ts = np.array([TIME])

    def made(p: int, q0: float = Q0) -> Config:
        return Config(InoPCA(TAU), SpikedModel(p=p, omega=OMEGA), WarmStart(q0), ts)

    found = {f"p = {p:,}": made(p) for p in (QUICK if quick else FULL)}
    return found | {f"p = {MIRROR:,}, q0 = -{Q0:g}": made(MIRROR, -Q0)}


def compute(quick: bool = False) -> Arrays:
    """Means and deviations at each p with their errors, and what is predicted: at the
    paper's p, from which it goes as a power of p, as a constant rate does not know it."""
    counts = QUICK if quick else FULL
    rows = []
    for number, config in enumerate(configs(quick).values()):
        p = config.model.p
        runs = simulate(config, key=jr.fold_in(jr.key(5), number), trials=counts[p])
        rows.append([p, counts[p], *_moments(runs.q), *_moments(runs.lam)])
    theory = fluctuations(
        Config(InoPCA(TAU), SpikedModel(p=P, omega=OMEGA), WarmStart(Q0), np.array([TIME]))
    )
    names = ("p", "trials", "q", "q_error", "q_std", "q_std_error")
    names += ("lam", "lam_error", "lam_std", "lam_std_error")
    found = {
        name: np.array(x) for name, x in zip(names, zip(*rows, strict=True), strict=True)
    }
    mirror = {f"mirror/{k}": np.asarray(v[-1]) for k, v in found.items()}
    found = {k: v[:-1] for k, v in found.items()} | mirror
    for name, power in (("", 0), ("_shift", 1), ("_std", 0.5)):
        for which in ("q", "lam"):
            value = float(getattr(theory, which + name)[0]) * P**power
            found[f"theory/{which}{name}"] = np.array(value)
    return found


def _moments(values: Any) -> tuple[float, float, float, float]:
    """Mean and standard deviation, each with its standard error."""
    x = np.asarray(values, float)[:, 0]
    std, centred = x.std(ddof=1), x - x.mean()
    spread = np.mean(centred**4) - np.mean(centred**2) ** 2
    root = len(x) ** 0.5
    return x.mean(), std / root, std, np.sqrt(spread) / root / (2 * std)


def _slope(p: np.ndarray, y: np.ndarray, error: np.ndarray) -> tuple[float, float]:
    """The power of p that y goes by, by weighted least squares of the logarithms."""
    x, weight = np.log(p), (y / error) ** 2
    x = x - np.sum(weight * x) / np.sum(weight)
    norm = np.sum(weight * x**2)
    return float(np.sum(weight * x * np.log(y)) / norm), float(norm**-0.5)


def _gap(found: Arrays) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Dimensions, distances of the mean overlap from the ODE, errors."""
    seen = found["p"] <= MOST_FOR_MEANS
    gap = np.abs(found["q"] - found["theory/q"])
    return found["p"][seen], gap[seen], found["q_error"][seen]


def draw(found: Arrays) -> Figure:
    """Means, and deviations."""
    with style():
        figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 3.2))
        p, gap, error = _gap(found)
        shift = abs(float(found["theory/q_shift"]))
        _points(left, p, gap, error, 0, "overlap", shift / p)
        left.set_ylabel(rf"$|\,E[q_t] - Q_t|$ at $t = {TIME:g}$")
        for i, (which, name) in enumerate((("q", "overlap"), ("lam", "norm"))):
            std, error = found[f"{which}_std"], found[f"{which}_std_error"]
            predicted = float(found[f"theory/{which}_std"]) / np.sqrt(found["p"])
            _points(right, found["p"], std, error, i, name, predicted)
        right.set_ylabel(f"standard deviation at $t = {TIME:g}$")
        for ax in (left, right):
            ax.set(xscale="log", yscale="log", xlabel="dimension $p$")
            ax.legend(loc="lower left")
    return figure


def _points(
    ax: Axes,
    p: np.ndarray,
    y: np.ndarray,
    error: np.ndarray,
    i: int,
    name: str,
    predicted: np.ndarray,
) -> None:
    fitted = p >= LEAST_FOR_SLOPES
    slope, slope_error = _slope(p[fitted], y[fitted], error[fitted])
    label = f"{name}, slope ${slope:.3f} \\pm {slope_error:.3f}$"
    look: dict = dict(color=COLOURS[i], fmt=MARKERS[i], capsize=2, elinewidth=1)
    ax.errorbar(p, y, yerr=error, label=label, **look)
    ax.plot(p, predicted, color=COLOURS[i], linestyle="--", label=f"{name}, predicted")


def claims(found: Arrays) -> list[Claim]:
    """What Theorem 1 and its derivation say of large p."""
    p, gap, error = _gap(found)
    return [
        _order(found, p, gap, error),
        *(_spread(found, which) for which in ("q", "lam")),
        _mirrored(found),
    ]


def _order(found: Arrays, p: np.ndarray, gap: np.ndarray, error: np.ndarray) -> Claim:
    fitted = p >= LEAST_FOR_SLOPES
    slope, slope_error = _slope(p[fitted], gap[fitted], error[fitted])
    ratio, ratio_error = (x * p / abs(found["theory/q_shift"]) for x in (gap, error))
    return Claim(
        "Theorem 1, O(1/p) in Section 5",
        "as p grows the process converges to the solution of the PDE, whose moments are "
        "the ODEs, with terms of O(1/p) left out",
        slope,
        slope_error,
        f"the mean of q at t = {TIME:g} from q0 = {Q0:g} is {gap[0]:.4f} off at p = "
        f"{p[0]:g} and {gap[-1]:.5f} +- {error[-1]:.5f} at p = {p[-1]:g}: p to the "
        f"{slope:.2f} +- {slope_error:.2f} from p = {LEAST_FOR_SLOPES} on, and "
        f"{ratio[-1]:.2f} +- {ratio_error[-1]:.2f} times the predicted shift",
        verdict(bool(abs(slope + 1) < CURVED + SURE * slope_error)),
        "holds",
        "The mean is off by the predicted multiple of 1/p, from the curvature of the ODE "
        "and the length of a step; below p = 200 the next order shows.",
    )


def _spread(found: Arrays, which: str) -> Claim:
    p, std, error = found["p"], found[f"{which}_std"], found[f"{which}_std_error"]
    fitted = p >= LEAST_FOR_SLOPES
    slope, slope_error = _slope(p[fitted], std[fitted], error[fitted])
    scale = np.sqrt(p) / found[f"theory/{which}_std"]
    return Claim(
        "Theorem 1, M_t in Section 5",
        "the martingale fluctuations vanish as p grows: the limit is deterministic "
        f"({which})",
        slope,
        slope_error,
        f"the standard deviation of {which} at t = {TIME:g} falls from {std[0]:.3f} at p = "
        f"{p[0]:g} to {std[-1]:.2g} at p = {p[-1]:g}: p to the {slope:.3f} +- "
        f"{slope_error:.3f}, and at the last {std[-1] * scale[-1]:.3f} +- "
        f"{error[-1] * scale[-1]:.3f} times the predicted",
        verdict(bool(abs(slope + 0.5) < CURVED + SURE * slope_error)),
        "holds",
        "As 1/sqrt(p), with the constant that the covariance of a step predicts.",
    )


def _mirrored(found: Arrays) -> Claim:
    at = int(np.argmin(np.abs(found["p"] - MIRROR)))
    sums = float(found["q"][at] + found["mirror/q"])
    error = float(np.hypot(found["q_error"][at], found["mirror/q_error"]))
    return Claim(
        "Theorem 1",
        "it is enough that the initial cosine similarity is nonzero, Q_0 != 0",
        sums,
        error,
        f"from q0 = -{Q0:g} at p = {MIRROR} the mean of q at t = {TIME:g} is "
        f"{float(found['mirror/q']):.4f}, from +{Q0:g} {found['q'][at]:.4f}: their sum is "
        f"{sums:+.4f} +- {error:.4f}",
        verdict(bool(abs(sums) < SURE * error and found["mirror/q"] < -Q0)),
        "holds",
        "x and -x are the same estimate: a run keeps the sign that it begins with, and "
        "positive is a convention.",
    )
