"""Learning curves: theory as lines, simulations as points with error bars."""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from matplotlib.axes import Axes

from .._check import (
    Checked,
    plain_number,
    reals_on_host,
    refuse,
    require_instance,
    require_list,
    require_whole,
)
from .._order_parameters import offline_overlap
from .._trajectory import AbstractTrajectory, Trajectory
from ._style import COLOURS, MARKERS, Drawn, Panels, finish_over_time, panels, style

Quantity = Literal["q", "lam"]

NAMES: dict[Quantity, str] = {
    "q": r"overlap $q_t$",
    "lam": r"norm $\lambda_t$",
}


class Curve(NamedTuple):
    """A learning curve of one algorithm: theory, simulations, or both.

    **Arguments:**

    - `label`: the name in the legend.
    - `theory`: a trajectory of shape `(times,)`, drawn as a line. If it has standard
        deviations (`fluctuations`, `overlap_law(...).abs()`) these are drawn as a band.
    - `runs`: trajectories of shape `(trials, times)`, drawn as mean and error bars.
    - `reference`: a second set of trajectories of shape `(trials, times)`, such as those of
        the p-dimensional stream, drawn as open markers without error bars.

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> from inopca_jax import plot
    >>> config = ino.Config(model=ino.SpikedModel(p=100), ts=[0.0, 1.0, 2.0])
    >>> curve = plot.Curve("INO-PCA", theory=ino.mean_field(config))
    >>> curve.runs is None
    True
    ```
    """

    label: str
    theory: AbstractTrajectory | None = None
    runs: AbstractTrajectory | None = None
    reference: AbstractTrajectory | None = None


def learning_curves(
    curves: Checked[Sequence[Curve]],
    *,
    quantities: Checked[Sequence[Quantity]] = ("q", "lam"),
    bars: Checked[float] = 1.0,
    omega: Checked[float | None] = None,
    ax: Checked[Panels] = None,
) -> Drawn:
    """Draws the overlap and the norm over time.

    **Arguments:**

    - `curves`: a list of `Curve`, all drawn in every panel.
    - `quantities`: what to draw, `"q"` and `"lam"`, one panel each.
    - `bars`: error bars and bands are `bars` standard deviations over trials. (The paper
        uses 1, and 1/3 where trials from cold starts spread widely.)
    - `omega`: if given, the panel of the overlap shows the limit of offline PCA at this
        signal-to-noise ratio, which no algorithm exceeds.
    - `ax`: matplotlib axes to draw on, one for each quantity; by default a new figure.

    **Returns:**

    `ax`, or the new matplotlib `Figure`.

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> from inopca_jax import plot
    >>> config = ino.Config(model=ino.SpikedModel(p=100), ts=[0.0, 1.0, 2.0])
    >>> curve = plot.Curve("INO-PCA", theory=ino.mean_field(config))
    >>> figure = plot.learning_curves([curve], omega=1.0)
    >>> len(figure.axes)
    2
    ```
    """
    checked_quantities = _require_quantities(quantities)
    checked = _require_curves(curves)
    bars = require_bars(bars)
    if omega is not None:
        omega = _require_omega(omega)
    with style():
        count = len(checked_quantities)
        drawn, axes = panels(ax, 1, count, (3.6 * count, 3.0))
        for panel, quantity in zip(axes[0], checked_quantities, strict=True):
            if quantity == "q" and omega is not None:
                offline_limit(panel, omega, _time_range(checked))
            for i, curve in enumerate(checked):
                draw(panel, curve, quantity, bars=bars, index=i)
            finish_over_time(panel, NAMES[quantity])
    return drawn


def draw(
    ax: Checked[Axes],
    curve: Checked[Curve],
    quantity: Checked[Quantity],
    *,
    bars: Checked[float] = 1.0,
    index: Checked[int] = 0,
) -> Axes:
    """Draws one curve on given axes.

    **Arguments:**

    - `ax`: matplotlib axes.
    - `curve`: the curve.
    - `quantity`: `"q"` or `"lam"`.
    - `bars`: error bars and bands are `bars` standard deviations.
    - `index`: selects the colour and the marker.

    **Returns:**

    `ax`.

    **Example:**

    ```pycon
    >>> import matplotlib.pyplot as plt
    >>> import inopca_jax as ino
    >>> from inopca_jax import plot
    >>> config = ino.Config(model=ino.SpikedModel(p=100), ts=[0.0, 1.0, 2.0])
    >>> figure, ax = plt.subplots()
    >>> ax = plot.draw(ax, plot.Curve("INO-PCA", theory=ino.mean_field(config)), "q")
    >>> ax.lines[0].get_label()
    'INO-PCA, theory'
    ```
    """
    require_instance("ax", ax, Axes)
    _require_curve("curve", curve)
    (quantity,) = _require_quantities([quantity], "quantity", quantity)
    bars = require_bars(bars)
    index = require_whole("index", index, 0, "pass a whole number, from 0 on")
    colour, marker = COLOURS[index % len(COLOURS)], MARKERS[index % len(MARKERS)]
    if curve.theory is not None:
        label = f"{curve.label}, theory"
        ax.plot(curve.theory.ts, getattr(curve.theory, quantity), color=colour, label=label)
        _band(ax, curve, quantity, bars, colour)
    if curve.runs is not None:
        runs, note = _finite_trials(curve.runs)
        points = _thinned(len(runs.ts))
        ax.errorbar(
            np.asarray(runs.ts)[points],
            np.asarray(getattr(runs.mean(), quantity))[points],
            yerr=bars * np.asarray(getattr(runs.std(), quantity))[points],
            fmt=marker,
            color=colour,
            capsize=2,
            elinewidth=1,
            label=f"{curve.label}, {note} $\\pm$ {_multiple(bars)}sd",
        )
    if curve.reference is not None:
        runs, note = _finite_trials(curve.reference)
        points = _thinned(len(runs.ts))
        for trial, values in enumerate(np.asarray(getattr(runs, quantity))):
            ax.plot(
                np.asarray(runs.ts)[points],
                values[points],
                marker,
                mfc="none",
                color=COLOURS[(index + 1) % len(COLOURS)],
                label=f"{curve.label}, p-dimensional, {note}" if trial == 0 else None,
            )
    return ax


def _require_curves(curves: Any) -> list[Curve]:
    remedy = "pass a list of Curve, at least one"
    # A single Curve is a tuple, and would be taken for a list.
    if isinstance(curves, Curve):
        refuse("curves", curves, remedy)
    checked = require_list("curves", curves, remedy)
    if not checked:
        refuse("curves", curves, remedy)
    for i, curve in enumerate(checked):
        _require_curve(f"curves[{i}]", curve)
    return checked


def _require_curve(name: str, curve: Any) -> None:
    require_instance(name, curve, Curve)
    for part in ("theory", "runs", "reference"):
        run = getattr(curve, part)
        if run is None:
            continue
        require_instance(f"{name}.{part}", run, AbstractTrajectory)
        axes = "(times,)" if part == "theory" else "(trials, times)"
        if run.q.ndim != (1 if part == "theory" else 2):
            raise ValueError(
                f"{name}.{part} with q of shape {run.q.shape} is not allowed: pass a "
                f"Trajectory of shape {axes}."
            )


def _require_quantities(
    quantities: Any, name: str = "quantities", value: Any = None
) -> list[Quantity]:
    """Returns a list of quantities; an error shows `value`, if given, as the argument."""
    remedy = "pass 'q', 'lam' or both"
    checked = require_list(name, quantities, remedy)
    if not checked or not all(isinstance(x, str) and x in NAMES for x in checked):
        refuse(name, quantities if value is None else value, remedy)
    return checked


def require_bars(bars: Any) -> float:
    in_range = lambda x: np.isfinite(x) & (x >= 0)
    return plain_number("bars", bars, in_range, "pass a finite number, not negative")


def _require_omega(omega: Any) -> float:
    in_range = lambda x: np.isfinite(x) & (x >= 0)
    return plain_number("omega", omega, in_range, "pass one finite number, omega >= 0")


def _band(ax: Axes, curve: Curve, quantity: Quantity, bars: float, colour: str) -> None:
    """Draws the standard deviations that theory predicts, if it does."""
    theory = curve.theory
    std = getattr(theory, f"{quantity}_std", None)
    if theory is None or std is None or not np.any(np.asarray(std) > 0):
        return
    shift = getattr(theory, f"{quantity}_shift", None)
    mean = np.asarray(getattr(theory, quantity)) + (0 if shift is None else shift)
    half = bars * np.asarray(std)
    ax.fill_between(
        theory.ts,
        mean - half,
        mean + half,
        color=colour,
        alpha=0.22,
        linewidth=0,
        label=f"{curve.label}, predicted $\\pm$ {_multiple(bars)}sd",
    )


def offline_limit(
    ax: Checked[Axes], omega: Checked[float], ts: Checked[np.ndarray]
) -> Axes:
    """Draws the overlap that PCA on all samples so far reaches, which none exceeds.

    **Arguments:**

    - `ax`: matplotlib axes.
    - `omega`: the signal-to-noise ratio.
    - `ts`: shape `(times,)`.

    **Returns:**

    `ax`.

    **Example:**

    ```pycon
    >>> import matplotlib.pyplot as plt
    >>> from inopca_jax import plot
    >>> figure, ax = plt.subplots()
    >>> plot.offline_limit(ax, 1.0, [0.0, 1.0, 2.0]) is ax
    True
    ```
    """
    require_instance("ax", ax, Axes)
    omega = _require_omega(omega)
    ts = reals_on_host("ts", ts, "pass an array of times")
    if ts.ndim != 1:
        raise ValueError(f"ts of shape {ts.shape} is not allowed: pass times in one axis.")
    ax.plot(
        ts,
        np.asarray(offline_overlap(omega, ts)),
        color="0.55",
        linestyle="--",
        linewidth=1.2,
        label="offline PCA, limit",
    )
    return ax


def _finite_trials(runs: AbstractTrajectory) -> tuple[Trajectory, str]:
    """Returns the trials that did not diverge, and a label with their number."""
    finite = np.asarray(runs.finite)
    trajectory = Trajectory(runs.ts, runs.q[finite], runs.lam[finite])
    trials = f"{finite.size} trials"
    if not finite.all():
        trials = f"{finite.sum()} of {trials} ({(~finite).sum()} diverged)"
    return trajectory, trials


def _multiple(bars: float) -> str:
    """Returns the factor of a standard deviation in a label."""
    return "" if bars == 1 else f"{bars:.2g} "


def _thinned(n: int, most: int = 26) -> np.ndarray:
    """Returns the indices of at most `most` of `n` points, evenly spaced."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).round().astype(int))


def _time_range(curves: Sequence[Curve]) -> np.ndarray:
    ends = [
        float(run.ts[-1]) for c in curves for run in (c.theory, c.runs) if run is not None
    ]
    return np.linspace(0.0, max(ends, default=1.0), 401)
