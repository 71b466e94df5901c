"""Paths of INO-PCA, PAST and PETRELS: of two components, and of one at several rates."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array

import inopca_jax as ino

from ..claim import Arrays
from ..learning_curves import OMEGA, TAU

INO, PAST, PETRELS = "INO-PCA", "PAST", "PETRELS"
P, OMEGAS, COMPONENTS, T_MAX = 1000, (4.0, 2.0), 2, 30.0
# Rates of paths, and the product of rate and time at which they are computed: at small
# rates the path in this time is the same for all rates.
TAUS = 0.32 / 2.0 ** np.arange(6)
SCALED_TIMES = np.linspace(0.0, 20.0, 201)


def _rules(tau: float | Array) -> dict[str, ino.AbstractAlgorithm]:
    """Returns the rules with one rate, and the same gain `tau` at the start."""
    return {
        INO: ino.InoPCA(tau),
        PAST: ino.PAST(tau, gain0=tau),
        PETRELS: ino.PETRELS(tau, gain0=tau),
    }


def configs(quick: bool = False) -> dict[str, ino.Config]:
    """Returns a config of several components for each rule."""
    model, ts = ino.SpikedModel(p=P, omega=OMEGAS), np.linspace(0.0, T_MAX, 31)
    return {
        name: ino.Config(rule, model, ino.WarmStart(0.2), ts, components=COMPONENTS)
        for name, rule in _rules(TAU).items()
    }


def compute(quick: bool = False) -> Arrays:
    """Returns the distances of several components in theory, and in trials of PAST, and the
    paths of one component by rate."""
    config = configs(quick)[PAST]
    runs: Any = ino.simulate(config, key=jr.key(15), trials=64 if quick else 512)
    arrays: Arrays = {"taus": TAUS, "ts": np.asarray(config.ts)}
    arrays[f"{PAST}/runs/distance"] = np.asarray(runs.grassmann_distance())
    for name, config in configs(quick).items():
        theory: Any = ino.mean_field(config)
        arrays[f"{name}/theory/distance"] = np.asarray(theory.grassmann_distance())
        arrays[f"{name}/q"] = np.asarray(jax.vmap(_path(name))(jnp.asarray(TAUS, float)))
    return arrays


def _path(name: str) -> Callable[[Array], Array]:
    """Returns a function from the rate to the path of the overlap of one component."""

    def path(tau: Array) -> Array:
        model, ts = ino.SpikedModel(omega=OMEGA), jnp.asarray(SCALED_TIMES, float) / tau
        return ino.mean_field(ino.Config(_rules(tau)[name], model, ts=ts)).q

    return path


def gaps(arrays: Arrays, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Returns the distance of the overlap from that of INO-PCA at every rate: the largest
    one along the path, and that at rest."""
    gap = np.abs(arrays[f"{name}/q"].astype(float) - arrays[f"{INO}/q"].astype(float))
    return gap.max(axis=1), gap[:, -1]


def power(taus: np.ndarray, gap: np.ndarray) -> float:
    """Returns the power of the rate by which a distance grows, from the smallest rates."""
    return float(np.polyfit(np.log(taus[-3:]), np.log(gap[-3:]), 1)[0])
