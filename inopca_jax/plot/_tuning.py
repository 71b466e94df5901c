"""Figures of tuning and of sensitivities."""

from collections.abc import Mapping

import jax
import numpy as np

from .._check import Checked, refuse, require_instance
from .._config import Config
from .._order_parameters import best_overlap, effective_gain, mean_field
from .._trajectory import AbstractTrajectory
from ._curves import NAMES, Curve, draw, offline_limit, require_bars
from ._style import COLOURS, Drawn, Panels, finish_over_time, panels, style


def tuning(
    before: Checked[Config],
    after: Checked[Config],
    *,
    runs: Checked[AbstractTrajectory | None] = None,
    bars: Checked[float] = 1.0,
    ax: Checked[Panels] = None,
) -> Drawn:
    """Draws the overlap and the gain before and after tuning.

    The overlap is drawn with two limits: that of the best gain, and that of offline PCA.
    The panel of the gain is left out for a schedule with a state, whose gain is not a
    function of overlap and norm.

    **Arguments:**

    - `before`: the config before tuning.
    - `after`: the config after tuning.
    - `runs`: simulations of `after`, of shape `(trials, times)`.
    - `bars`: error bars are `bars` standard deviations.
    - `ax`: matplotlib axes to draw on, one for each panel; by default a new figure.

    **Returns:**

    `ax`, or the new matplotlib `Figure`.

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> from inopca_jax import plot
    >>> parts = dict(model=ino.SpikedModel(p=100), ts=[0.0, 1.0, 2.0])
    >>> before, after = (ino.Config(ino.InoPCA(tau), **parts) for tau in (0.5, 0.3))
    >>> figure = plot.tuning(before, after)
    >>> figure.axes[0].get_ylabel()
    'overlap $q_t$'
    ```
    """
    require_instance("before", before, Config)
    require_instance("after", after, Config)
    if runs is not None:
        require_instance("runs", runs, AbstractTrajectory)
    bars = require_bars(bars)
    ts, configs = np.asarray(before.ts), {"before": before, "after": after}
    model, *later = before.model.phases()
    best = np.asarray(best_overlap(before, ts))
    dotted: dict = dict(color="0.25", linestyle=":", linewidth=1.4, label="best gain")
    dotted["zorder"] = 3
    has_state = bool(jax.tree.leaves(before.rule.tau.init(float(before.model.p))))
    with style():
        count = 1 if has_state else 2
        drawn, axes = panels(ax, 1, count, (3.6 * count, 3.0))
        overlap, gain = axes[0, 0], axes[0, -1]
        paths = {label: mean_field(config) for label, config in configs.items()}
        if not later and model.turning is None:
            offline_limit(overlap, float(model.effective_omega), ts)
        for i, (label, path) in enumerate(paths.items()):
            curve = Curve(label, path.abs(), runs if label == "after" else None)
            draw(overlap, curve, "q", bars=bars, index=i)
        overlap.plot(ts, best, **dotted)
        finish_over_time(overlap, NAMES["q"])
        if not has_state:
            for i, (label, path) in enumerate(paths.items()):
                nu = effective_gain(configs[label], path)
                gain.plot(ts, nu, color=COLOURS[i], label=label)
            if not later:
                omega = float(model.effective_omega)
                gain.plot(ts, omega * (1 - best**2) / (omega * best**2 + 1), **dotted)
            finish_over_time(gain, r"gain $\nu_t$")
    return drawn


def sensitivities(
    by_name: Checked[Mapping[str, AbstractTrajectory]], *, ax: Checked[Panels] = None
) -> Drawn:
    """Draws derivatives of the overlap and the norm over time.

    **Arguments:**

    - `by_name`: a dict of labels and what `sensitivity` returns, one curve each.
    - `ax`: two matplotlib axes to draw on; by default a new figure.

    **Returns:**

    `ax`, or the new matplotlib `Figure`.

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> from inopca_jax import plot
    >>> config = ino.Config(model=ino.SpikedModel(p=100), ts=[0.0, 1.0, 2.0])
    >>> figure = plot.sensitivities({"tau": ino.sensitivity(config, "rule.tau")})
    >>> len(figure.axes)
    2
    ```
    """
    if not isinstance(by_name, Mapping) or not by_name:
        refuse("by_name", by_name, "pass a dict of names and what sensitivity returns")
    for name, slope in by_name.items():
        require_instance(f"by_name[{name!r}]", slope, AbstractTrajectory)
    with style():
        drawn, axes = panels(ax, 1, 2, (7.2, 3.0))
        for panel, quantity in zip(axes[0], ("q", "lam"), strict=True):
            for i, (name, slope) in enumerate(by_name.items()):
                colour = COLOURS[i % len(COLOURS)]
                panel.plot(slope.ts, getattr(slope, quantity), color=colour, label=name)
            panel.axhline(0, color="0.55", linewidth=0.8)
            finish_over_time(panel, f"derivative of the {NAMES[quantity]}")
    return drawn
