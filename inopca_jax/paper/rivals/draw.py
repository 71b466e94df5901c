"""The drawing of the figure `rivals`."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from inopca_jax import plot

from ..learning_curves import OMEGA, THIRD, Arrays, as_curves, from_arrays
from .compute import ORACLE, PUBLISHED, T_MAX

_WITH_REGULAR_LIMIT, _AS_PUBLISHED = "with a regular limit", "as published"


def draw(arrays: Arrays) -> Figure:
    """Draws the algorithms with a regular limit, and those as published."""
    with plot.style():
        figure, axes = plt.subplots(1, 2, figsize=(8.4, 3.6), sharey=True)
        for ax in axes:
            plot.offline_limit(ax, OMEGA, np.linspace(0, T_MAX, 301))
            ax.set(xlabel=r"time $t = k/p$")
            ax.margins(x=0.02)
        curves = {curve.label: (i, curve) for i, curve in enumerate(as_curves(arrays))}
        for name, (i, curve) in curves.items():
            if name not in PUBLISHED:
                plot.draw(axes[0], curve, "q", index=i)
        # An algorithm has the same colour in both panels.
        for i, name in ((curves[ORACLE][0], ORACLE), (3, PUBLISHED[0]), (4, PUBLISHED[1])):
            runs = None if name == ORACLE else from_arrays(arrays, f"{name}/runs")
            theory = from_arrays(arrays, f"{name}/theory")
            plot.draw(axes[1], plot.Curve(name, theory, runs), "q", bars=THIRD, index=i)
        axes[0].set(ylabel=r"overlap $q_t$", title=_WITH_REGULAR_LIMIT)
        axes[1].set(ylabel=r"$|q_t|$", title=_AS_PUBLISHED)
        for ax in axes:
            _legend_of_lines(ax)
    return figure


def _legend_of_lines(ax: Axes) -> None:
    """Adds a legend without the points, which have the colours of the lines."""
    handles, labels = ax.get_legend_handles_labels()
    lines = {
        label.removesuffix(", theory").removesuffix(f", {_AS_PUBLISHED}"): handle
        for handle, label in zip(handles, labels, strict=True)
        if "trials" not in label
    }
    ax.legend(list(lines.values()), list(lines))
