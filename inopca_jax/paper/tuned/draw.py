"""The drawing of the figure `tuned`."""

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from inopca_jax import plot

from ..claim import Arrays
from ..drawing import legend_of_lines, time_axis
from ..learning_curves import OMEGA, curve_of
from .compute import CASES, oracle_gain


def draw(arrays: Arrays) -> Figure:
    """Draws the overlaps and the gains."""
    oracle: dict = dict(color="0.15", linestyle=":", linewidth=1.6, label="oracle")
    ts = arrays["ts"]
    with plot.style():
        figure, (left, right) = plt.subplots(1, 2, figsize=(7.6, 3.4))
        plot.offline_limit(left, OMEGA, ts)
        for i, name in enumerate(CASES):
            plot.draw(left, curve_of(arrays, name), "q", index=i)
            right.plot(ts, arrays[f"{name}/gain"], color=plot.COLOURS[i], label=name)
        left.plot(ts, arrays["oracle"], zorder=3, **oracle)
        right.plot(ts, oracle_gain(arrays["oracle"]), zorder=3, **oracle)
        left.set_ylabel(r"overlap $q_t$")
        right.set(ylabel=r"gain $\nu_t = \tau_t/\lambda_t$", ylim=(0, 1.75))
        time_axis(left, right)
        legend_of_lines(left, loc="lower right", fontsize=8)
        legend_of_lines(right, fontsize=8)
    return figure
