"""The drawing of the learning curves and of the phase portrait."""

from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from inopca_jax import plot

from ..claim import Arrays
from ..drawing import overlap_panel
from ..learning_curves import UNLEARNED_NORM
from .compute import PORTRAIT_LAM, PORTRAIT_Q, configs


def draw(arrays: Arrays) -> Figure:
    """Draws the curves on the left and the portrait on the right."""
    with plot.style():
        figure, (left, right) = plt.subplots(
            1, 2, figsize=(8.4, 4.6), gridspec_kw=dict(width_ratios=[1.25, 1])
        )
        handles = overlap_panel(left, arrays, list(configs()))
        _draw_portrait(right, arrays)
        figure.legend(handles=handles, loc="outside upper center", ncols=4)
    return figure


def _draw_portrait(ax: Axes, arrays: Arrays) -> None:
    q, lam = arrays["portrait/q"], arrays["portrait/lam"]
    dq, dlam = arrays["portrait/flow"]
    arrows: dict[str, Any] = dict(color="0.75", linewidth=0.6, arrowsize=0.6, density=0.9)
    ax.streamplot(PORTRAIT_Q, PORTRAIT_LAM, dq, dlam, **arrows)
    path: dict[str, Any] = dict(color=plot.COLOURS[0], linewidth=1.1)
    red: dict[str, Any] = dict(color="red", linewidth=2)
    ax.plot(q[1:].T, lam[1:].T, **path)
    ax.plot(q[1:, 0], lam[1:, 0], ".", color=plot.COLOURS[0])
    ax.plot(q[0], lam[0], **red)
    handles = [
        Line2D([], [], label=r"from $q_0 = 0.01$", **path),
        Line2D([], [], label=rf"$\lambda_0 = {UNLEARNED_NORM:.3f}$", **red),
    ]
    fixed = zip(arrays["fixed/points"], arrays["fixed/eigenvalues"], strict=True)
    for point, (low, high) in fixed:
        kind = "stable" if high < 0 else "saddle" if low < 0 < high else "unstable"
        marker: dict[str, Any] = dict(mfc="black" if high < 0 else "white", color="black")
        marker |= dict(linestyle="none", markersize=6, zorder=5, label=kind)
        handles += ax.plot(*point, "o", **marker)
    ax.set(xlabel=r"overlap $q$", ylabel=r"norm $\lambda$", xlim=(-0.03, 1), ylim=(0, 3.05))
    ax.grid(visible=False)
    frame: dict[str, Any] = dict(frameon=True, framealpha=0.9, edgecolor="none")
    ax.legend(handles=handles, loc="lower right", handlelength=1.4, **frame)
