"""What tuning did, and what a path is sensitive to."""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from .._config import Config
from .._theory import best_overlap, effective_gain, mean_field
from .._trajectory import Trajectory
from ._curves import NAMES, Curve, draw, offline_limit
from ._style import COLOURS, style


def tuning(
    before: Config, after: Config, *, runs: Trajectory | None = None, bars: float = 1.0
) -> Figure:
    """The overlap before and after, with the limits of any gain and of any algorithm; and
    the gains, beside the best one. `runs` are simulations of the config `after`."""
    ts = np.asarray(before.ts)
    with style():
        figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 3.0))
        phases = before.model.phases()
        if len(phases) == 1:
            offline_limit(left, float(phases[0].omega), ts)
        best = dict(color="0.25", linestyle=":", linewidth=1.4, label="best gain")
        left.plot(ts, np.asarray(best_overlap(before, ts)), **best)
        for i, (label, config) in enumerate({"before": before, "after": after}.items()):
            path = mean_field(config)
            shown = runs if label == "after" else None
            draw(left, Curve(label, path.abs(), shown), "q", bars=bars, index=i)
            right.plot(ts, effective_gain(config, path), color=COLOURS[i], label=label)
        q2 = np.asarray(best_overlap(before, ts)) ** 2
        if len(phases) == 1:
            omega = float(phases[0].omega)
            right.plot(ts, omega * (1 - q2) / (omega * q2 + 1), **best)
        left.set_ylabel(NAMES["q"])
        right.set_ylabel(r"gain $\nu_t$")
        for ax in (left, right):
            ax.set_xlabel(r"time $t = k/p$")
            ax.margins(x=0.02)
            ax.legend()
    return figure


def sensitivities(by_name: Mapping[str, Trajectory]) -> Figure:
    """The derivatives of the overlap and of the norm (`sensitivity`), a curve a number."""
    with style():
        figure, axes = plt.subplots(1, 2, figsize=(7.2, 3.0))
        for ax, quantity in zip(axes, ("q", "lam"), strict=True):
            for i, (name, slope) in enumerate(by_name.items()):
                colour = COLOURS[i % len(COLOURS)]
                ax.plot(slope.ts, getattr(slope, quantity), color=colour, label=name)
            ax.axhline(0, color="0.55", linewidth=0.8)
            ax.set_xlabel(r"time $t = k/p$")
            ax.set_ylabel(f"derivative of the {NAMES[quantity]}")
            ax.margins(x=0.02)
            ax.legend()
    return figure
