"""What tuning did, and what a path is sensitive to."""

from collections.abc import Mapping

import jax
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from .._check import Checked, refuse, require_instance
from .._config import Config
from .._order_parameters import best_overlap, effective_gain, mean_field
from .._trajectory import Trajectory
from ._curves import NAMES, Curve, draw, offline_limit, require_bars
from ._style import COLOURS, style


def tuning(
    before: Checked[Config],
    after: Checked[Config],
    *,
    runs: Checked[Trajectory | None] = None,
    bars: Checked[float] = 1.0,
) -> Figure:
    """The overlap before and after, with the limits of any gain and of any algorithm; and
    the gains, beside the best one, unless they follow from a schedule's memory. `runs` are
    simulations of the config `after`."""
    require_instance("before", before, Config)
    require_instance("after", after, Config)
    if runs is not None:
        require_instance("runs", runs, Trajectory)
    bars = require_bars(bars)
    ts, configs = np.asarray(before.ts), {"before": before, "after": after}
    model, *later = before.model.phases()
    best = np.asarray(best_overlap(before, ts))
    dotted: dict = dict(color="0.25", linestyle=":", linewidth=1.4, label="best gain")
    dotted["zorder"] = 3
    remembers = bool(jax.tree.leaves(before.rule.tau.init(before.model.float_p)))
    with style():
        panels = 1 if remembers else 2
        figure, axes = plt.subplots(1, panels, figsize=(3.6 * panels, 3.0), squeeze=False)
        overlap, gain = axes[0, 0], axes[0, -1]
        paths = {label: mean_field(config) for label, config in configs.items()}
        if not later:
            offline_limit(overlap, float(model.omega), ts)
        for i, (label, path) in enumerate(paths.items()):
            shown = runs if label == "after" else None
            draw(overlap, Curve(label, path.abs(), shown), "q", bars=bars, index=i)
        overlap.plot(ts, best, **dotted)
        overlap.set_ylabel(NAMES["q"])
        if not remembers:
            for i, (label, path) in enumerate(paths.items()):
                nu = effective_gain(configs[label], path)
                gain.plot(ts, nu, color=COLOURS[i], label=label)
            if not later:
                omega = float(model.omega)
                gain.plot(ts, omega * (1 - best**2) / (omega * best**2 + 1), **dotted)
            gain.set_ylabel(r"gain $\nu_t$")
        for ax in axes[0]:
            ax.set_xlabel(r"time $t = k/p$")
            ax.margins(x=0.02)
            ax.legend()
    return figure


def sensitivities(by_name: Checked[Mapping[str, Trajectory]]) -> Figure:
    """The derivatives of the overlap and of the norm (`sensitivity`), a curve a number."""
    if not isinstance(by_name, Mapping) or not by_name:
        refuse("by_name", by_name, "pass a dict of names and what sensitivity returns")
    for name, slope in by_name.items():
        require_instance(f"by_name[{name!r}]", slope, Trajectory)
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
