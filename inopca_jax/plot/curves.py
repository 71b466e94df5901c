"""Figures: theory as lines, simulations as points with bars, limits in grey."""

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ._density import Density, nearest
from ._histogram import Histogram
from ._theory import offline_overlap
from ._trajectory import Trajectory

Quantity = Literal["q", "lam"]

# Okabe and Ito's colours, which colour-blind readers can tell apart, and markers, so
# that a print in grey still can.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")

_STYLE = {
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 10,
    "figure.constrained_layout.use": True,
    "figure.dpi": 100,
    "font.size": 10,
    "grid.alpha": 0.25,
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "lines.markersize": 4,
    "savefig.dpi": 200,
}

_NAMES: dict[Quantity, str] = {
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


@contextlib.contextmanager
def style() -> Iterator[None]:
    """The house style, for figures made inside of it only."""
    with plt.rc_context(_STYLE):  # pyright: ignore[reportArgumentType]
        yield


def learning_curves(
    curves: Sequence[Curve],
    *,
    quantities: Sequence[Quantity] = ("q", "lam"),
    bars: float = 1.0,
    omega: float | None = None,
) -> Figure:
    """A panel a quantity, all curves in each.

    Bars, and the bands that theory predicts for them, are `bars` times the standard
    deviation over trials (the paper uses 1, and 1/3 where cold starts spread widely). With
    `omega`, the overlap's panel shows the limit that offline PCA sets to every algorithm.
    """
    with style():
        figure, axes = plt.subplots(
            1, len(quantities), figsize=(3.6 * len(quantities), 3.0), squeeze=False
        )
        for ax, quantity in zip(axes[0], quantities, strict=True):
            if quantity == "q" and omega is not None:
                offline_limit(ax, omega, _span(curves))
            for i, curve in enumerate(curves):
                draw(ax, curve, quantity, bars=bars, index=i)
            ax.set_xlabel(r"time $t = k/p$")
            ax.set_ylabel(_NAMES[quantity])
            ax.margins(x=0.02)
            ax.legend()
    return figure


def draw(ax: Axes, curve: Curve, quantity: Quantity, *, bars: float = 1.0, index: int = 0):
    """One curve on one axes; `index` picks its colour and marker."""
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


def offline_limit(ax: Axes, omega: float, ts: np.ndarray) -> None:
    """What PCA on all samples so far would reach: the limit of any algorithm."""
    ax.plot(
        ts,
        np.asarray(offline_overlap(omega, ts)),
        color="0.55",
        linestyle="--",
        linewidth=1.2,
        label="offline PCA, limit",
    )


def save(figure: Figure, path: str | Path) -> None:
    """Writes the figure, in the format that the name's ending says."""
    with style():
        figure.savefig(path)
    plt.close(figure)


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


def density(
    theory: Density,
    empirical: Histogram | None = None,
    *,
    times: Sequence[float] | None = None,
    given: Sequence[float] | None = None,
    rescaled: bool | None = None,
) -> Figure:
    """Panels of theory over histogram, one column a time.

    One row, of marginals; or, with `given`, a row for each of these entries of the spike,
    beside the histogram's group that holds it (of a law that is not of point masses, the
    narrower the group the closer). `rescaled` shows `x/lam`, as the paper does, by default
    if the histogram was counted so. Bars are one standard error.
    """
    if rescaled is None:
        rescaled = empirical is None or empirical.rescaled
    if empirical is not None and empirical.rescaled != rescaled:
        raise ValueError(
            f"rescaled = {rescaled} is not allowed: the histogram was counted with "
            f"rescaled = {empirical.rescaled}."
        )
    moments = [theory.at(float(t)) for t in (theory.ts if times is None else times)]
    moments = [now.rescaled() if rescaled else now for now in moments]
    rows = [None] if given is None else list(given)
    with style():
        figure, axes = plt.subplots(
            len(rows),
            len(moments),
            figsize=(2.7 * len(moments) + 0.4, 2.3 * len(rows) + 0.3),
            sharex=True,
            sharey="row",
            squeeze=False,
        )
        for column, now in enumerate(moments):
            axes[0, column].set_title(f"$t = {float(now.ts[0]):.4g}$")
            axes[-1, column].set_xlabel(r"$x/\lambda_t$" if rescaled else "$x$")
            for row, xi in enumerate(rows):
                ax = axes[row, column]
                if empirical is not None:
                    _histogram(ax, empirical, float(now.ts[0]), xi)
                _density_curve(ax, now, xi)
        for row, xi in enumerate(rows):
            given_xi = "" if xi is None else f"\\,|\\,\\xi = {xi:.3g}"
            axes[row, 0].set_ylabel(f"$P_t(x{given_xi})$")
            axes[row, 0].set_ylim(bottom=0)
        axes[0, 0].set_xlim(_span_of(moments, rows))
        axes[0, 0].legend(loc="upper left")
    return figure


def _curve_of(now: Density, xi: float | None) -> tuple[np.ndarray, np.ndarray]:
    pdf = now.marginal() if xi is None else now.conditional(xi)
    x = np.asarray(now.x)
    return (x[0] if x.ndim > 1 else x), np.asarray(pdf)[0]


def _density_curve(ax: Axes, now: Density, xi: float | None) -> None:
    ax.plot(*_curve_of(now, xi), color=COLOURS[0], label="theory")


def _histogram(ax: Axes, empirical: Histogram, t: float, xi: float | None) -> None:
    i = nearest(empirical.ts, t)
    if np.isfinite(t) and not np.isclose(empirical.ts[i], t):
        raise ValueError(f"empirical has no time t = {t}: its times are {empirical.ts}.")
    if xi is None:
        pdf, error = empirical.marginal[i], empirical.marginal_error[i]
    else:
        low, high = empirical.groups.T
        holds = np.flatnonzero((low <= xi) & (xi < high))
        if not holds.size:
            raise ValueError(f"given = {xi} is in none of the histogram's groups.")
        pdf, error = empirical.pdf[i, holds[0]], empirical.error[i, holds[0]]
    edges, colour = empirical.edges[i], COLOURS[1]
    ax.stairs(pdf, edges, fill=True, color=colour, alpha=0.3, label="simulation")
    ax.errorbar(
        empirical.centres[i], pdf, yerr=error, fmt="none", color=colour, elinewidth=0.8
    )


def _span_of(moments: Sequence[Density], rows: Sequence[float | None]) -> tuple:
    """Where there is anything to see."""
    ends = []
    for now in moments:
        for xi in rows:
            x, pdf = _curve_of(now, xi)
            seen = x[pdf > 1e-3 * pdf.max()]
            ends += [seen[0], seen[-1]]
    return min(ends), max(ends)
