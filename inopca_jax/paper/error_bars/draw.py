"""The drawing of predicted and measured standard deviations."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from inopca_jax import plot

from ..figure import Arrays
from ..learning_curves import from_arrays
from .claims import error_of_std
from .compute import RULES, STARTS


def draw(arrays: Arrays) -> Figure:
    """Draws a row a start: the mean of q, and the standard deviations of q and lam."""
    with plot.style():
        figure, axes = plt.subplots(2, 3, figsize=(10.2, 5.6), sharex=True)
        for row, start in zip(axes, STARTS, strict=True):
            for i, name in enumerate(RULES):
                theory, runs = (
                    from_arrays(arrays, f"{name}, {start}/{x}") for x in ("theory", "runs")
                )
                plot.draw(row[0], plot.Curve(name, theory, runs), "q", index=i)
                _draw_deviation(row[1], "q", theory, runs, i, name)
                if name == "INO-PCA":
                    _draw_deviation(row[2], "lam", theory, runs, i, name)
            row[0].set(ylabel=r"overlap $q_t$", title=start.replace("q0", "$q_0$"))
            row[1].set(ylabel=r"standard deviation of $q_t$")
            row[2].set(ylabel=r"standard deviation of $\lambda_t$")
            for ax in row:
                ax.margins(x=0.02)
            for ax in row[1:]:
                ax.set_ylim(bottom=0)
        axes[0, 0].legend(loc="lower right", fontsize=7.5)
        axes[0, 1].legend()
        for ax in axes[-1]:
            ax.set_xlabel(r"time $t = k/p$")
    return figure


def _draw_deviation(
    ax: Axes, field: str, theory: Any, runs: Any, index: int, name: str
) -> None:
    values = np.asarray(getattr(runs, field), float)
    predicted, colour = getattr(theory, f"{field}_std"), plot.COLOURS[index]
    ax.plot(theory.ts, predicted, color=colour, label=f"{name}, theory")
    ax.errorbar(
        np.asarray(runs.ts),
        values.std(axis=0, ddof=1),
        yerr=error_of_std(values),
        fmt=plot.MARKERS[index],
        color=colour,
        capsize=2,
        elinewidth=1,
        label=f"{name}, {len(values)} trials",
    )
