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
        p, distance = distance_from_ode(arrays)
        shift = abs(float(arrays["theory/q_shift"]))
        _draw_points(left, p, distance, 0, "overlap", shift / p)
        left.set_ylabel(rf"$|\,E[q_t] - Q_t|$ at $t = {TIME:g}$")
        for i, (quantity, name) in enumerate((("q", "overlap"), ("lam", "norm"))):
            std = Mean(arrays[f"{quantity}_std"], arrays[f"{quantity}_std_error"])
            predicted = float(arrays[f"theory/{quantity}_std"]) / np.sqrt(arrays["p"])
            _draw_points(right, arrays["p"], std, i, name, predicted)
        right.set_ylabel(f"standard deviation at $t = {TIME:g}$")
        for ax in (left, right):
            ax.set(xscale="log", yscale="log", xlabel="dimension $p$")
            ax.legend(loc="lower left")
    return figure


def _draw_points(
    ax: Axes, p: np.ndarray, y: Mean, index: int, name: str, predicted: np.ndarray
) -> None:
    slope = fitted_slope(p, y)
    label = f"{name}, slope ${slope.value:.3f} \\pm {slope.error:.3f}$"
    points(ax, p, y, index, label=label)
    label = f"{name}, predicted"
    ax.plot(p, predicted, color=plot.COLOURS[index], linestyle="--", label=label)
