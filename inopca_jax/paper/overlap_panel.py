"""A panel of the overlaps of several algorithms, with one name each in the legend."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from .._trajectory import Trajectory
from ..plot import COLOURS, MARKERS, Curve, draw as draw_curve

# The paper's bars where runs from cold starts spread widely.
THIRD = 1 / 3


def overlap_panel(ax: Axes, curves: Sequence[Curve], bars: float = THIRD) -> list[Line2D]:
    """Draws |q|: theory as lines with its band, trials as points with bars, witnesses as
    open black markers. Returns what a legend has to show."""
    names, witnesses = [], []
    for i, curve in enumerate(curves):
        # Each at times of its own, so that bars do not hide one another.
        runs = _at(curve.runs, slice(2 * i % 6, None, 6)) if curve.runs else None
        draw_curve(ax, curve._replace(runs=runs, witness=None), "q", bars=bars, index=i)
        look: dict[str, Any] = dict(color=COLOURS[i], marker=MARKERS[i])
        label = _with_symbols(curve.label)
        names.append(Line2D([], [], label=label, **look))
        if curve.witness is not None:
            look = dict(color="black", mfc="none", linestyle="none", marker=MARKERS[i])
            ts, q = np.asarray(curve.witness.ts), np.asarray(curve.witness.q)
            ax.plot(ts, q.T, zorder=4, **look)
            witnesses.append(Line2D([], [], label=f"{label}, p-dimensional", **look))
    ax.set_xlabel(r"time $t = k/p$")
    ax.set_ylabel(r"overlap $|q_t|$")
    ax.margins(x=0.02)
    return names + witnesses


def _with_symbols(label: str) -> str:
    return label.replace("tau =", r"$\tau$ =").replace("lam0 =", r"$\lambda_0$ =")


def _at(runs: Trajectory, shown: slice) -> Trajectory:
    return Trajectory(runs.ts[shown], runs.q[:, shown], runs.lam[:, shown])


def limit_line(ax: Axes, ts: np.ndarray, q: np.ndarray, label: str, dashes: str) -> Line2D:
    """Draws what no algorithm of some kind exceeds, in grey; what a legend shows of it."""
    look: dict[str, Any] = dict(color="0.45", linestyle=dashes, linewidth=1.2)
    ax.plot(ts, q, zorder=1, **look)
    return Line2D([], [], label=label, **look)
