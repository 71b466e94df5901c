"""Learning curves at the paper's parameters, which most of its figures consist of."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float

import inopca_jax as ino
from inopca_jax import plot

from .claim import Arrays

P, TAU, OMEGA, TRIALS = 10_000, 0.5, 1.0, 20
# From a cold start the mean of 20 trials may be so far from the mean of all trials that it
# looks like an error of the theory. That of this many has a standard error below 0.015.
MANY_TRIALS = 400
# A unit of time of the p-dimensional algorithm costs p^2. At this p, many trials of it that
# last until the end take a few seconds.
REFERENCE_P, REFERENCE_TRIALS = 500, 100
# The norm of INO-PCA at rest while q = 0.
UNLEARNED_NORM = (1 + (1 + 2 * TAU) ** 0.5) / 2


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


def linearised(
    q: np.ndarray, lam: np.ndarray, omega: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Returns the velocity (dq/dt, dlam/dt) of INO-PCA at several states, and the real
    parts of the eigenvalues of its Jacobian there in ascending order, each of shape
    `(states, 2)`."""

    def velocity(state: Float[Array, "2"], omega: Float[Array, ""]) -> Float[Array, "2"]:
        config = ino.Config(ino.InoPCA(TAU), ino.SpikedModel(omega=omega))
        return jnp.stack(ino.velocity(config, state[0], state[1]))

    of_state = jax.jit(jax.vmap(lambda *x: (velocity(*x), jax.jacfwd(velocity)(*x))))
    states = jnp.stack([jnp.asarray(q, float), jnp.asarray(lam, float)], axis=1)
    velocities, jacobians = of_state(states, jnp.asarray(omega, float))
    eigenvalues = np.linalg.eigvals(np.asarray(jacobians, float))
    return np.asarray(velocities, float), np.sort(eigenvalues.real, axis=1)


def compute_curves(
    configs: Mapping[str, ino.Config],
    *,
    key: Array,
    trials: int = TRIALS,
    engine: ino.AbstractEngine | None = None,
    error_bars: bool = False,
) -> Arrays:
    """Returns theory and trials as arrays, by the configs' names.

    All configs use the same key, so that trial i of each sees the same samples: the time at
    which a trial from a cold start leaves q = 0 is random, and would otherwise blur the
    differences between algorithms. From a cold start trials settle on either sign: `q` is
    `|q|`, and there is also the mean gain. From other starts theory is the mean field, with
    standard deviations at this p if `error_bars`.
    """
    arrays: Arrays = {}
    for name, config in configs.items():
        runs = ino.simulate(config, key=key, trials=trials, engine=engine)
        if not isinstance(config.start, ino.ColdStart):
            theory = ino.fluctuations(config) if error_bars else ino.mean_field(config)
        else:
            theory, gain = ino.cold_start_law(config)
            arrays[f"{name}/gain"] = np.asarray(gain)
            runs = runs.abs()
        arrays |= to_arrays(f"{name}/theory", theory) | to_arrays(f"{name}/runs", runs)
    return arrays


def compute_overlaps(
    configs: Mapping[str, ino.Config], *, seed: int, reference: ino.Config | None = None
) -> Arrays:
    """Returns theory, the paper's 20 trials, and the mean of |q| over many trials as
    `mean/q`; and curves of the p-dimensional algorithm for the config `reference`."""
    key, reference_key = jr.split(jr.key(seed))
    arrays = compute_curves(configs, key=key, trials=MANY_TRIALS)
    for name in configs:
        arrays[f"{name}/mean/q"] = np.abs(arrays[f"{name}/runs/q"]).mean(axis=0)
        for field in ("q", "lam"):
            arrays[f"{name}/runs/{field}"] = arrays[f"{name}/runs/{field}"][:TRIALS]
    if reference is not None:
        arrays |= compute_curves(
            {"reference": reference},
            key=reference_key,
            trials=REFERENCE_TRIALS,
            engine=ino.Stream(),
        )
    return arrays


def as_curves(arrays: Arrays) -> list[plot.Curve]:
    """Returns what `compute_curves` has computed as curves to draw, one a config."""
    end = "/runs/ts"
    names = [key.removesuffix(end) for key in arrays if key.endswith(end)]
    return [curve_of(arrays, name) for name in names]


def curve_of(arrays: Arrays, name: str) -> plot.Curve:
    """Returns the curve of a config, with theory and trials if there are any."""
    parts = ("theory", "runs")
    return plot.Curve(name, *(from_arrays(arrays, f"{name}/{part}") for part in parts))


def to_arrays(name: str, run: ino.AbstractTrajectory) -> Arrays:
    """Returns the fields of a trajectory as arrays `<name>/<field>`."""
    return {f"{name}/{field}": np.asarray(value) for field, value in vars(run).items()}


def from_arrays(arrays: Arrays, name: str) -> Any:
    """Returns the trajectory that `to_arrays` has stored as `name`, for example
    `"<config>/theory"` or `"<config>/runs"`; None if there is none."""
    if f"{name}/ts" not in arrays:
        return None
    kind = ino.Prediction if f"{name}/q_std" in arrays else ino.Trajectory
    fields = [field.name for field in dataclasses.fields(kind)]
    return kind(**{field: jnp.asarray(arrays[f"{name}/{field}"]) for field in fields})
