"""The drawing of predicted and measured standard deviations."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from inopca_jax import plot

from ..claim import Arrays
from ..drawing import points, time_axis
from ..learning_curves import curve_of
from ..statistics import std_of
from .compute import RULES, STARTS


def draw(arrays: Arrays) -> Figure:
    """Draws a row a start: the mean of q, and the standard deviations of q and lam."""
    with plot.style():
        figure, axes = plt.subplots(2, 3, figsize=(10.2, 5.6), sharex=True)
        for row, start in zip(axes, STARTS, strict=True):
            for i, name in enumerate(RULES):
                curve = curve_of(arrays, f"{name}, {start}")._replace(label=name)
                plot.draw(row[0], curve, "q", index=i)
                _draw_deviation(row[1], "q", curve, i)
                if name == "INO-PCA":
                    _draw_deviation(row[2], "lam", curve, i)
            row[0].set(ylabel=r"overlap $q_t$", title=start.replace("q0", "$q_0$"))
            row[1].set(ylabel=r"standard deviation of $q_t$", ylim=(0, None))
            row[2].set(ylabel=r"standard deviation of $\lambda_t$", ylim=(0, None))
        axes[0, 0].legend(loc="lower right", fontsize=7.5)
        axes[0, 1].legend()
        time_axis(*axes[-1])
    return figure


def _draw_deviation(ax: Axes, field: str, curve: plot.Curve, index: int) -> None:
    theory, runs = curve.theory, curve.runs
    assert theory is not None
    assert runs is not None
    std, label = getattr(theory, f"{field}_std"), f"{curve.label}, theory"
    ax.plot(theory.ts, std, color=plot.COLOURS[index], label=label)
    values, label = getattr(runs, field), f"{curve.label}, {len(runs.q)} trials"
    points(ax, np.asarray(runs.ts), std_of(values), index, label=label)
