"""Learning curves: theory as lines, simulations as points with bars, limits in grey."""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .._check import (
    Checked,
    plain_number,
    reals_on_host,
    refuse,
    require_instance,
    require_list,
    require_whole,
)
from .._order_parameters import offline_overlap
from .._trajectory import Trajectory
from ._style import COLOURS, MARKERS, style

Quantity = Literal["q", "lam"]

NAMES: dict[Quantity, str] = {
    "q": r"overlap $q_t$",
    "lam": r"norm $\lambda_t$",
}


class Curve(NamedTuple):
    """One algorithm: what theory says of it, what simulations of it did, or both.

    A theory that knows its standard deviations (`fluctuations`, `overlap_law(...).abs()`)
    is drawn with a band of them. `witness` is a second set of simulations, drawn as open
    markers without bars.
    """

    label: str
    theory: Trajectory | None = None
    runs: Trajectory | None = None
    witness: Trajectory | None = None


def learning_curves(
    curves: Checked[Sequence[Curve]],
    *,
    quantities: Checked[Sequence[Quantity]] = ("q", "lam"),
    bars: Checked[float] = 1.0,
    omega: Checked[float | None] = None,
) -> Figure:
    """A panel a quantity, all curves in each.

    Bars, and the bands that theory predicts for them, are `bars` times the standard
    deviation over trials (the paper uses 1, and 1/3 where cold starts spread widely). With
    `omega`, the overlap's panel shows the limit that offline PCA sets to every algorithm.
    """
    shown = _quantities(quantities)
    drawn = _curves(curves)
    bars = require_bars(bars)
    if omega is not None:
        omega = _omega(omega)
    with style():
        figure, axes = plt.subplots(
            1, len(shown), figsize=(3.6 * len(shown), 3.0), squeeze=False
        )
        for ax, quantity in zip(axes[0], shown, strict=True):
            if quantity == "q" and omega is not None:
                offline_limit(ax, omega, _span(drawn))
            for i, curve in enumerate(drawn):
                draw(ax, curve, quantity, bars=bars, index=i)
            ax.set_xlabel(r"time $t = k/p$")
            ax.set_ylabel(NAMES[quantity])
            ax.margins(x=0.02)
            ax.legend()
    return figure


def draw(
    ax: Checked[Axes],
    curve: Checked[Curve],
    quantity: Checked[Quantity],
    *,
    bars: Checked[float] = 1.0,
    index: Checked[int] = 0,
):
    """One curve on one axes; `index` picks its colour and marker."""
    require_instance("ax", ax, Axes)
    _require_curve("curve", curve)
    (quantity,) = _quantities([quantity], "quantity", quantity)
    bars = require_bars(bars)
    index = require_whole("index", index, 0, "pass a whole number, from 0 on")
    colour, marker = COLOURS[index % len(COLOURS)], MARKERS[index % len(MARKERS)]
    if curve.theory is not None:
        label = f"{curve.label}, theory"
        ax.plot(curve.theory.ts, getattr(curve.theory, quantity), color=colour, label=label)
        _band(ax, curve, quantity, bars, colour)
    if curve.runs is not None:
        runs, note = _kept(curve.runs)
        shown = _thinned(len(runs.ts))
        ax.errorbar(
            np.asarray(runs.ts)[shown],
            np.asarray(getattr(runs.mean(), quantity))[shown],
            yerr=bars * np.asarray(getattr(runs.std(), quantity))[shown],
            fmt=marker,
            color=colour,
            capsize=2,
            elinewidth=1,
            label=f"{curve.label}, {note} $\\pm$ {_multiple(bars)}sd",
        )
    if curve.witness is not None:
        runs, note = _kept(curve.witness)
        shown = _thinned(len(runs.ts))
        for trial, values in enumerate(np.asarray(getattr(runs, quantity))):
            ax.plot(
                np.asarray(runs.ts)[shown],
                values[shown],
                marker,
                mfc="none",
                color=COLOURS[(index + 1) % len(COLOURS)],
                label=f"{curve.label}, p-dimensional, {note}" if trial == 0 else None,
            )


def _curves(curves: Any) -> list[Curve]:
    remedy = "pass a list of Curve, at least one"
    # A Curve is a tuple, of other things than curves.
    if isinstance(curves, Curve):
        refuse("curves", curves, remedy)
    found = require_list("curves", curves, remedy)
    if not found:
        refuse("curves", curves, remedy)
    for i, curve in enumerate(found):
        _require_curve(f"curves[{i}]", curve)
    return found


def _require_curve(name: str, curve: Any) -> None:
    require_instance(name, curve, Curve)
    for part in ("theory", "runs", "witness"):
        run = getattr(curve, part)
        if run is None:
            continue
        require_instance(f"{name}.{part}", run, Trajectory)
        axes = "(times,)" if part == "theory" else "(trials, times)"
        if run.q.ndim != (1 if part == "theory" else 2):
            raise ValueError(
                f"{name}.{part} with q of shape {run.q.shape} is not allowed: pass a "
                f"Trajectory of shape {axes}."
            )


def _quantities(
    quantities: Any, name: str = "quantities", given: Any = None
) -> list[Quantity]:
    given, remedy = quantities if given is None else given, "pass 'q', 'lam' or both"
    # One name is text, and would be taken letter by letter.
    found = require_list(name, quantities, remedy)
    if not found or not all(isinstance(one, str) and one in NAMES for one in found):
        refuse(name, given, remedy)
    return found


def require_bars(bars: Any) -> float:
    in_range = lambda x: np.isfinite(x) & (x >= 0)
    return plain_number("bars", bars, in_range, "pass a finite number, not negative")


def _omega(omega: Any) -> float:
    in_range = lambda x: np.isfinite(x) & (x >= 0)
    return plain_number("omega", omega, in_range, "pass one finite number, omega >= 0")


def _band(ax: Axes, curve: Curve, quantity: Quantity, bars: float, colour: str) -> None:
    theory = curve.theory
    std = getattr(theory, f"{quantity}_std")
    if theory is None or std is None or not np.any(np.asarray(std) > 0):
        return
    shift = getattr(theory, f"{quantity}_shift")
    mean = np.asarray(getattr(theory, quantity)) + (0 if shift is None else shift)
    half = bars * np.asarray(std)
    ax.fill_between(
        theory.ts,
        mean - half,
        mean + half,
        color=colour,
        alpha=0.22,
        linewidth=0,
        label=f"{curve.label}, predicted $\\pm$ {_multiple(bars)}sd",
    )


def offline_limit(
    ax: Checked[Axes], omega: Checked[float], ts: Checked[np.ndarray]
) -> None:
    """What PCA on all samples so far would reach: the limit of any algorithm."""
    require_instance("ax", ax, Axes)
    omega = _omega(omega)
    ts = reals_on_host("ts", ts, "pass an array of times")
    if ts.ndim != 1:
        raise ValueError(f"ts of shape {ts.shape} is not allowed: pass times in one axis.")
    ax.plot(
        ts,
        np.asarray(offline_overlap(omega, ts)),
        color="0.55",
        linestyle="--",
        linewidth=1.2,
        label="offline PCA, limit",
    )


def _kept(runs: Trajectory) -> tuple[Trajectory, str]:
    """The finite trials, and a label that says how many there are, of how many."""
    finite = np.asarray(runs.finite)
    kept = Trajectory(runs.ts, runs.q[finite], runs.lam[finite])
    trials = f"{finite.size} trials"
    if not finite.all():
        trials = f"{finite.sum()} of {trials} ({(~finite).sum()} diverged)"
    return kept, trials


def _multiple(bars: float) -> str:
    return "" if bars == 1 else f"{bars:.2g} "


def _thinned(n: int, most: int = 26) -> np.ndarray:
    return np.unique(np.linspace(0, n - 1, min(n, most)).round().astype(int))


def _span(curves: Sequence[Curve]) -> np.ndarray:
    ends = [
        float(run.ts[-1]) for c in curves for run in (c.theory, c.runs) if run is not None
    ]
    return np.linspace(0.0, max(ends, default=1.0), 401)
