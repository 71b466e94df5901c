"""The drawing of the figure `rivals`."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from inopca_jax import plot

from ..claim import Arrays
from ..drawing import THIRD, legend_of_lines, time_axis
from ..learning_curves import OMEGA, as_curves
from .compute import ORACLE, PUBLISHED, T_MAX


def draw(arrays: Arrays) -> Figure:
    """Draws the algorithms with a regular limit, and those as published."""
    with plot.style():
        figure, axes = plt.subplots(1, 2, figsize=(8.4, 3.6), sharey=True)
        for ax in axes:
            plot.offline_limit(ax, OMEGA, np.linspace(0, T_MAX, 301))
        curves = {curve.label: curve for curve in as_curves(arrays)}
        regular = [name for name in curves if name not in PUBLISHED]
        for i, name in enumerate(regular):
            plot.draw(axes[0], curves[name], "q", index=i)
        # An algorithm has the same colour in both panels.
        oracle = curves[ORACLE]._replace(runs=None)
        plot.draw(axes[1], oracle, "q", index=regular.index(ORACLE))
        for i, name in enumerate(PUBLISHED, start=len(regular) - len(PUBLISHED)):
            curve = curves[name]._replace(label=name.removesuffix(", as published"))
            plot.draw(axes[1], curve, "q", bars=THIRD, index=i)
        axes[0].set(ylabel=r"overlap $q_t$", title="with a regular limit")
        axes[1].set(ylabel=r"$|q_t|$", title="as published")
        time_axis(*axes)
        for ax in axes:
            legend_of_lines(ax)
    return figure
