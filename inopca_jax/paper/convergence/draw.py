"""The drawing of the figure `convergence`."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from inopca_jax import plot

from ..claim import Arrays
from ..drawing import points
from ..statistics import Mean
from .compute import TIME, distance_from_ode, fitted_slope


def draw(arrays: Arrays) -> Figure:
    """Draws the distances of means, and the standard deviations, by dimension."""
    with plot.style():
        figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 3.2))
        _draw_points(left, *distance_from_ode(arrays), 0, "overlap")
        left.set_ylabel(rf"$|\,E[q_t] - Q_t|$ at $t = {TIME:g}$")
        for i, (quantity, name) in enumerate((("q", "overlap"), ("lam", "norm"))):
            std = Mean(arrays[f"{quantity}_std"], arrays[f"{quantity}_std_error"])
            predicted = arrays[f"theory/{quantity}_std"]
            _draw_points(right, arrays["p"], std, predicted, i, name)
        right.set_ylabel(f"standard deviation at $t = {TIME:g}$")
        for ax in (left, right):
            ax.set(xscale="log", yscale="log", xlabel="dimension $p$")
            ax.legend(loc="lower left")
    return figure


def _draw_points(
    ax: Axes, p: np.ndarray, y: Mean, predicted: np.ndarray, index: int, name: str
) -> None:
    slope = fitted_slope(p, y)
    label = f"{name}, slope ${slope.value:.3f} \\pm {slope.error:.3f}$"
    points(ax, p, y, index, label=label)
    label = f"{name}, predicted"
    ax.plot(p, predicted, color=plot.COLOURS[index], linestyle="--", label=label)
