"""Learning curves at the paper's parameters, which most of its figures consist of.

Trials are simulated by the exact chain. As a reference, a few shorter trials are simulated
by the p-dimensional algorithm itself, which costs p times as much.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

import inopca_jax as ino
from inopca_jax import plot

from .figure import Arrays

P, TAU, OMEGA, TRIALS = 10_000, 0.5, 1.0, 20
# How many trials of the p-dimensional algorithm there are beside those of the chain.
REFERENCE_TRIALS = 2
# The error bars of the paper where cold starts spread widely, in standard deviations.
THIRD = 1 / 3

_RUNS, _REFERENCE, _THEORY = "runs", "reference", "theory"


def paper_config(
    rule: ino.AbstractRule,
    *,
    t_max: float,
    points: int = 101,
    start: ino.AbstractStart | None = None,
    spike: ino.AbstractSpike | None = None,
    omega: float | Array = OMEGA,
    p: int = P,
) -> ino.Config:
    """Returns a config with the paper's defaults: p = 10,000, omega = 1, the spike of
    Example 1, q0 = 0.1 and lam0 = 1."""
    return ino.Config(
        rule=rule,
        model=ino.SpikedModel(p=p, omega=omega, spike=spike or ino.Uniform()),
        start=ino.WarmStart(q0=0.1) if start is None else start,
        ts=np.linspace(0.0, t_max, points),
    )


def shortened(config: ino.Config, t_max: float) -> ino.Config:
    """Returns the config with those of its times that are at most `t_max`."""
    ts = np.asarray(config.ts)
    return dataclasses.replace(config, ts=ts[ts <= t_max])


def compute_curves(
    configs: Mapping[str, ino.Config],
    *,
    trials: int = TRIALS,
    seed: int = 0,
    reference_until: Mapping[str, float] | None = None,
    error_bars: bool = False,
) -> Arrays:
    """Returns theory, trials and reference trials as arrays, by the configs' names.

    `reference_until` has the time until which there are reference trials, by config. Where
    trials may settle on either sign, as from a cold start, `q` is `|q|`. With `error_bars`
    the theory includes the standard deviations at this p; from a cold start it always does,
    because the limit alone stays at q = 0.
    """
    arrays: Arrays = {}
    for number, (name, config) in enumerate(configs.items()):
        key, reference_key = jr.split(jr.fold_in(jr.key(seed), number))
        signed = ino.keeps_sign(config)
        theory = ino.predict(config, error_bars=error_bars or not signed)
        arrays |= to_arrays(f"{name}/{_THEORY}", theory)
        runs = ino.simulate(config, key=key, trials=trials)
        arrays |= to_arrays(f"{name}/{_RUNS}", runs if signed else runs.abs())
        if reference_until and name in reference_until:
            reference = _reference(config, reference_until[name], reference_key)
            reference = reference if signed else reference.abs()
            arrays |= to_arrays(f"{name}/{_REFERENCE}", reference)
    return arrays


def compute_cold_curves(
    configs: Mapping[str, ino.Config],
    *,
    trials: int = TRIALS,
    seed: int = 0,
    reference_until: Mapping[str, float] | None = None,
) -> Arrays:
    """Returns the same as `compute_curves` from cold starts, with the mean gain.

    The theory is `cold_start_law`. All configs use the same key, so that trial i of each
    begins at the same estimate and sees the same samples: the time at which a trial leaves
    q = 0 is random, and would otherwise blur the differences between algorithms.
    """
    arrays: Arrays = {}
    key, reference_key = jr.split(jr.key(seed))
    for name, config in configs.items():
        theory, gain = ino.cold_start_law(config)
        arrays |= to_arrays(f"{name}/{_THEORY}", theory)
        arrays[f"{name}/gain"] = np.asarray(gain)
        runs = ino.simulate(config, key=key, trials=trials)
        arrays |= to_arrays(f"{name}/{_RUNS}", runs.abs())
        if reference_until and name in reference_until:
            reference = _reference(config, reference_until[name], reference_key)
            arrays |= to_arrays(f"{name}/{_REFERENCE}", reference.abs())
    return arrays


def _reference(config: ino.Config, t_max: float, key: Array) -> ino.AbstractTrajectory:
    """Returns trials of the p-dimensional algorithm up to the time `t_max`."""
    short, engine = shortened(config, t_max), ino.Stream()
    return ino.simulate(short, key=key, trials=REFERENCE_TRIALS, engine=engine)


def as_curves(arrays: Arrays) -> list[plot.Curve]:
    """Returns what `compute_curves` has computed as curves to draw, one a config."""
    end = f"/{_RUNS}/ts"
    names = [key.removesuffix(end) for key in arrays if key.endswith(end)]
    parts = (_THEORY, _RUNS, _REFERENCE)
    return [
        plot.Curve(name, *(from_arrays(arrays, f"{name}/{part}") for part in parts))
        for name in names
    ]


def to_arrays(name: str, run: ino.AbstractTrajectory) -> Arrays:
    """Returns the fields of a trajectory as arrays `<name>/<field>`."""
    return {f"{name}/{field}": np.asarray(value) for field, value in vars(run).items()}


def from_arrays(arrays: Arrays, name: str) -> Any:
    """Returns the trajectory that `to_arrays` has stored as `name`, for example
    `"<config>/theory"`, `"<config>/runs"` or `"<config>/reference"`; None if there is
    none."""
    if f"{name}/ts" not in arrays:
        return None
    kind = ino.Prediction if f"{name}/q_std" in arrays else ino.Trajectory
    fields = [field.name for field in dataclasses.fields(kind)]
    return kind(**{field: jnp.asarray(arrays[f"{name}/{field}"]) for field in fields})


def overlap_panel(
    ax: Axes, curves: Sequence[plot.Curve], bars: float = THIRD
) -> list[Line2D]:
    """Draws `|q|` of several algorithms and returns the legend's handles.

    Theory is drawn as a line with a band of `bars` standard deviations, trials as points
    with bars, and reference trials as open black markers.
    """
    handles, reference_handles = [], []
    for i, curve in enumerate(curves):
        # Points of different curves are at different times, so that bars do not overlap.
        times = slice(2 * i % 6, None, 6)
        runs = None if curve.runs is None else _at_times(curve.runs, times)
        plot.draw(ax, curve._replace(runs=runs, reference=None), "q", bars=bars, index=i)
        style: dict[str, Any] = dict(color=plot.COLOURS[i], marker=plot.MARKERS[i])
        label = _with_symbols(curve.label)
        handles.append(Line2D([], [], label=label, **style))
        if curve.reference is not None:
            style = dict(
                color="black", mfc="none", linestyle="none", marker=plot.MARKERS[i]
            )
            ts, q = np.asarray(curve.reference.ts), np.asarray(curve.reference.q)
            ax.plot(ts, q.T, zorder=4, **style)
            reference_handles.append(
                Line2D([], [], label=f"{label}, p-dimensional", **style)
            )
    ax.set_xlabel(r"time $t = k/p$")
    ax.set_ylabel(r"overlap $|q_t|$")
    ax.margins(x=0.02)
    return handles + reference_handles


def _with_symbols(label: str) -> str:
    return label.replace("tau =", r"$\tau$ =").replace("lam0 =", r"$\lambda_0$ =")


def _at_times(runs: ino.AbstractTrajectory, times: slice) -> ino.Trajectory:
    return ino.Trajectory(runs.ts[times], runs.q[:, times], runs.lam[:, times])


def limit_line(
    ax: Axes, ts: np.ndarray, q: np.ndarray, label: str, linestyle: str
) -> Line2D:
    """Draws an upper limit of the overlap in grey and returns its handle for a legend."""
    style: dict[str, Any] = dict(color="0.45", linestyle=linestyle, linewidth=1.2)
    ax.plot(ts, q, zorder=1, **style)
    return Line2D([], [], label=label, **style)
