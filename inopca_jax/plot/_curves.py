"""Learning curves: theory as lines, simulations as points with error bars.

A curve of several components is as many lines, in a colour for each component; then the
style of the lines and the marker tell the curves of a figure apart, as colours do else.
"""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from jaxtyping import Float
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
from .._components import AbstractComponentTrajectory, SeveralComponents
from .._order_parameters import offline_overlap
from .._trajectory import AbstractTrajectory
from ._style import COLOURS, MARKERS, Drawn, Panels, finish_over_time, panels, style

Quantity = Literal["q", "lam", "distance"]

NAMES: dict[Quantity, str] = {
    "q": r"overlap $q_t$",
    "lam": r"norm $\lambda_t$",
    "distance": "Grassmann distance",
}

Path: TypeAlias = AbstractTrajectory | SeveralComponents

_LINES = ("-", "--", "-.", ":")
_GREY = "0.35"
"""The colour of what a legend says of all components."""


class Curve(NamedTuple):
    """A learning curve of one algorithm: theory, simulations, or both.

    **Arguments:**

    - `label`: the name in the legend.
    - `theory`: a trajectory of shape `(times,)`, drawn as a line. If it has standard
        deviations (`fluctuations`, `overlap_law(...).abs()`) these are drawn as a band.
    - `runs`: trajectories of shape `(trials, times)`, drawn as mean and error bars.
    - `reference`: a second set of trajectories of shape `(trials, times)`, such as those of
        the p-dimensional stream, drawn as open markers without error bars.

    All of them may be of several components (`ComponentTrajectory`): then the overlap is
    that of each component with its own spike, the i-th component's being the i-th
    strongest. Their signs are those of the trajectories: pass `runs.abs()` where trials
    settle on either sign.

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
    theory: Path | None = None
    runs: Path | None = None
    reference: Path | None = None

    @property
    def paths(self) -> list[Path]:
        """What there is of theory, simulations and reference."""
        given = (self.theory, self.runs, self.reference)
        return [path for path in given if path is not None]

    @property
    def components(self) -> int | None:
        """How many components the curve has; None of one spike and one component."""
        counts = [
            path.norms.shape[-1]
            for path in self.paths
            if isinstance(path, AbstractComponentTrajectory)
        ]
        return counts[0] if counts else None


def learning_curves(
    curves: Checked[Sequence[Curve]],
    *,
    quantities: Checked[Sequence[Quantity]] = ("q", "lam"),
    bars: Checked[float] = 1.0,
    omega: Checked[Any] = None,
    ax: Checked[Panels] = None,
) -> Drawn:
    """Draws the overlap and the norm over time, of one component or of several.

    **Arguments:**

    - `curves`: a list of `Curve`, all drawn in every panel.
    - `quantities`: what to draw, one panel each: `"q"`, `"lam"`, and of several components
        also `"distance"`, the Grassmann distance.
    - `bars`: error bars and bands are `bars` standard deviations over trials. (The paper
        uses 1, and 1/3 where trials from cold starts spread widely.)
    - `omega`: if given, the panels of the overlap and the distance show the limit of
        offline PCA at this signal-to-noise ratio, which no algorithm exceeds. Of several
        components, pass the signal-to-noise ratios of all spikes.
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
    checked = _require_curves(curves)
    checked_quantities = _require_quantities(quantities, checked)
    bars = require_bars(bars)
    if omega is not None:
        omega = _require_omega(omega) if checked[0].components is None else omega
    with style():
        count = len(checked_quantities)
        of_components = checked[0].components is not None
        width, height = (4.2, 3.7) if of_components else (3.6, 3.0)
        drawn, axes = panels(ax, 1, count, (width * count, height))
        for panel, quantity in zip(axes[0], checked_quantities, strict=True):
            if quantity != "lam" and omega is not None:
                _draw_offline(panel, quantity, omega, checked)
            for i, curve in enumerate(checked):
                draw(panel, curve, quantity, bars=bars, index=i)
            finish_over_time(panel, NAMES[quantity])
            if of_components:
                # Above the panel: lines of several components leave no room for so much.
                above: dict[str, Any] = dict(loc="lower center", bbox_to_anchor=(0.45, 1))
                panel.legend(**above, ncols=2, fontsize=7.5, columnspacing=1)
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
    - `quantity`: `"q"`, `"lam"`, or of several components `"distance"`.
    - `bars`: error bars and bands are `bars` standard deviations.
    - `index`: selects the colour and the marker; of several components the marker and the
        style of the lines.

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
    (quantity,) = _require_quantities([quantity], [curve], "quantity", quantity)
    bars = require_bars(bars)
    index = require_whole("index", index, 0, "pass a whole number, from 0 on")
    marker, count = MARKERS[index % len(MARKERS)], curve.components
    if count is None or quantity == "distance":
        colour, line = COLOURS[index % len(COLOURS)], "-"
        other = COLOURS[(index + 1) % len(COLOURS)]
        _draw_paths(ax, curve, quantity, 0, bars, colour, other, line, marker, True)
        return ax
    line = _LINES[index % len(_LINES)]
    for i in range(count if quantity == "lam" else _matched(curve)):
        colour = COLOURS[i % len(COLOURS)]
        if f"component {i + 1}" not in ax.get_legend_handles_labels()[1]:
            ax.plot([], [], color=colour, linewidth=4, label=f"component {i + 1}")
        _draw_paths(ax, curve, quantity, i, bars, colour, colour, line, marker, False)
    # What the lines and the markers of all components are.
    _draw_paths(ax, curve, quantity, None, bars, _GREY, _GREY, line, marker, True)
    return ax


def _draw_paths(
    ax: Axes,
    curve: Curve,
    quantity: Quantity,
    component: int | None,
    bars: float,
    colour: str,
    other: str,
    line: str,
    marker: str,
    labelled: bool,
) -> None:
    """Draws theory, simulations and reference of one component, or for a legend alone if
    that is None. The reference has the colour `other`."""
    at = slice(None) if component is not None else slice(0)
    named = lambda text: f"{curve.label}, {text}" if labelled else None
    values = lambda path: _values(path, quantity)[..., component or 0][..., at]
    if curve.theory is not None:
        ts = np.asarray(curve.theory.ts)[at]
        drawn = dict(color=colour, linestyle=line, label=named("theory"))
        ax.plot(ts, values(curve.theory), **drawn)  # pyright: ignore
        _band(ax, curve, quantity, bars, colour)
    if curve.runs is not None:
        finite, note = _finite_trials(curve.runs)
        points = _thinned(len(curve.runs.ts))[at]
        of_trials = _values(curve.runs, quantity)[finite][..., component or 0]
        std = of_trials.std(axis=0, ddof=1) if len(of_trials) > 1 else 0 * of_trials[0]
        ax.errorbar(
            np.asarray(curve.runs.ts)[points],
            of_trials.mean(axis=0)[points],
            yerr=bars * std[points],
            fmt=marker,
            color=colour,
            capsize=2,
            elinewidth=1,
            label=named(f"{note} $\\pm$ {_multiple(bars)}sd"),
        )
    if curve.reference is not None:
        finite, note = _finite_trials(curve.reference)
        points = _thinned(len(curve.reference.ts))[at]
        of_trials = _values(curve.reference, quantity)[finite][..., component or 0]
        for trial, row in enumerate(of_trials):
            ax.plot(
                np.asarray(curve.reference.ts)[points],
                row[points],
                marker,
                mfc="none",
                color=other,
                label=named(f"p-dimensional, {note}") if trial == 0 else None,
            )


def _values(path: Path, quantity: Quantity) -> Float[np.ndarray, "*trials times curves"]:
    """Returns a quantity over time, of all components that have it."""
    if not isinstance(path, AbstractComponentTrajectory):
        found = getattr(path, quantity)[..., None]
    elif quantity == "q":
        found = path.matched_overlaps()
    else:
        found = path.norms if quantity == "lam" else path.grassmann_distance()[..., None]
    return np.asarray(found, dtype=float)


def _matched(curve: Curve) -> int:
    """Returns how many components have a spike of their own."""
    return _values(curve.paths[0], "q").shape[-1]


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
    kinds = {curve.components is None for curve in checked if curve.paths}
    if len(kinds) > 1:
        raise ValueError(
            "curves of one component and of several are not allowed in one figure, as "
            "colours mean curves or components: draw them on axes of their own."
        )
    return checked


def _require_curve(name: str, curve: Any) -> None:
    require_instance(name, curve, Curve)
    for part in ("theory", "runs", "reference"):
        run = getattr(curve, part)
        if run is None:
            continue
        axes = "(times,)" if part == "theory" else "(trials, times)"
        ndim = 1 if part == "theory" else 2
        if isinstance(run, AbstractComponentTrajectory):
            if run.norms.ndim != ndim + 1:
                raise ValueError(
                    f"{name}.{part} with norms of shape {run.norms.shape} is not allowed: "
                    f"pass norms of shape {axes.replace(')', ' components)')}."
                )
            continue
        require_instance(f"{name}.{part}", run, AbstractTrajectory)
        if run.q.ndim != ndim:
            raise ValueError(
                f"{name}.{part} with q of shape {run.q.shape} is not allowed: pass a "
                f"Trajectory of shape {axes}."
            )
    shapes = {
        path.overlaps.shape[-2:] if isinstance(path, AbstractComponentTrajectory) else ()
        for path in curve.paths
    }
    if len(shapes) > 1:
        raise ValueError(
            f"{name} has paths of different numbers of spikes and components "
            f"({', '.join(map(str, sorted(shapes)))}): pass a Curve for each."
        )


def _require_quantities(
    quantities: Any, curves: Sequence[Curve], name: str = "quantities", value: Any = None
) -> list[Quantity]:
    """Returns a list of quantities that all curves have; an error shows `value`, if given,
    as the argument."""
    of_components = all(curve.components is not None for curve in curves)
    known = [*NAMES] if of_components else ["q", "lam"]
    remedy = f"pass some of {', '.join(map(repr, known))}"
    if not of_components:
        remedy += "; only curves of several components have a 'distance'"
    checked = require_list(name, quantities, remedy)
    if not checked or not all(isinstance(x, str) and x in known for x in checked):
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
    _draw_limit(ax, ts, np.asarray(offline_overlap(omega, ts)))
    return ax


def _draw_offline(
    ax: Axes, quantity: Quantity, omega: Any, curves: Sequence[Curve]
) -> None:
    """Draws the limits of offline PCA: of each spike that a component is to find, or of the
    distance."""
    ts = _time_range(curves)
    if curves[0].components is None:
        offline_limit(ax, omega, ts)
        return
    paths: list[Any] = [path for curve in curves for path in curve.paths]
    spikes = {path.overlaps.shape[-2] for path in paths}
    remedy = "pass the signal-to-noise ratios of all spikes, each finite and not negative"
    omegas = reals_on_host("omega", omega, remedy)
    fine = omegas.ndim < 2 and np.all(np.isfinite(omegas) & (omegas >= 0))
    if not fine or spikes != {omegas.size}:
        refuse("omega", omega, remedy)
    targets = np.sort(omegas.reshape(-1))[::-1][: max(map(_matched, curves))]
    if quantity == "q":
        for target in targets:
            offline_limit(ax, target, ts)
        return
    q = np.asarray(offline_overlap(targets, ts[:, None]), dtype=float)
    _draw_limit(ax, ts, np.sqrt(np.sum(np.arccos(q) ** 2, axis=-1)))


def _draw_limit(ax: Axes, ts: np.ndarray, values: np.ndarray) -> None:
    label = "offline PCA, limit"
    is_first = label not in ax.get_legend_handles_labels()[1]
    style: dict[str, Any] = dict(color="0.55", linestyle="--", linewidth=1.2)
    ax.plot(ts, values, label=label if is_first else None, **style)


def _finite_trials(runs: Path) -> tuple[np.ndarray, str]:
    """Returns which trials did not diverge, and a label with their number."""
    finite = np.asarray(runs.finite)
    trials = f"{finite.size} trials"
    if not finite.all():
        trials = f"{finite.sum()} of {trials} ({(~finite).sum()} diverged)"
    return finite, trials


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
