"""The drawing of the figure `tuned`."""

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from inopca_jax import plot

from ..learning_curves import OMEGA, Arrays, from_arrays
from .compute import CASES, oracle_gain


def draw(arrays: Arrays) -> Figure:
    """Draws the overlaps and the gains."""
    oracle_style: dict = dict(
        color="0.15", linestyle=":", linewidth=1.6, label="oracle", zorder=3
    )
    ts = arrays["ts"]
    with plot.style():
        figure, (left, right) = plt.subplots(1, 2, figsize=(7.6, 3.4))
        plot.offline_limit(left, OMEGA, ts)
        for i, name in enumerate(CASES):
            theory, runs = (from_arrays(arrays, f"{name}/{x}") for x in ("theory", "runs"))
            plot.draw(left, plot.Curve(name, theory, runs), "q", index=i)
            right.plot(ts, arrays[f"{name}/gain"], color=plot.COLOURS[i], label=name)
        left.plot(ts, arrays["oracle"], **oracle_style)
        right.plot(ts, oracle_gain(arrays["oracle"]), **oracle_style)
        left.set_ylabel(r"overlap $q_t$")
        right.set(ylabel=r"gain $\nu_t = \tau_t/\lambda_t$", ylim=(0, 1.75))
        for ax in (left, right):
            ax.set_xlabel(r"time $t = k/p$")
            ax.margins(x=0.02)
        lines = [
            (handle, label.removesuffix(", theory"))
            for handle, label in zip(*left.get_legend_handles_labels(), strict=True)
            if "trials" not in label
        ]
        left.legend(*zip(*lines, strict=True), loc="lower right", fontsize=8)
        right.legend(fontsize=8)
    return figure
