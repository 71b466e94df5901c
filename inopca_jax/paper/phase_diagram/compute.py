"""Overlaps and steady overlaps over the learning rate and the signal-to-noise ratio."""

from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

import inopca_jax as ino

from ..claim import Arrays
from ..learning_curves import TAU

RULES: dict[str, Any] = {"INO-PCA": ino.InoPCA, "Oja": ino.Oja}
SMALL_P, T_MAX = 2000, 40.0
TAU_RANGE, OMEGA_RANGE = (0.2, 3.0), (0.05, 2.0)


def configs(quick: bool = False) -> dict[str, ino.Config]:
    """Returns what is swept over tau and omega, a config for each rule."""
    model, ts = ino.SpikedModel(p=SMALL_P), np.array([T_MAX])
    start = ino.WarmStart(0.5)
    return {name: ino.Config(rule(TAU), model, start, ts) for name, rule in RULES.items()}


def compute(quick: bool = False) -> Arrays:
    """Returns |q| on a grid of tau and omega; and from theory the transition, and steady
    overlaps on the grid and, for contours, on a finer one."""
    points, trials = (12, 2) if quick else (24, 3)
    taus, omegas = (np.linspace(*ends, points) for ends in (TAU_RANGE, OMEGA_RANGE))
    fine_taus, fine_omegas = (np.linspace(*ends, 80) for ends in (TAU_RANGE, OMEGA_RANGE))
    arrays: Arrays = {"taus": taus, "omegas": omegas}
    arrays |= {"fine/taus": fine_taus, "fine/omegas": fine_omegas}
    for name, config in configs(quick).items():
        rule = RULES[name]
        grid = {"rule.tau": taus, "model.omega": omegas}
        dataset = ino.sweep(config, grid, trials=trials, key=jr.key(9))
        arrays[f"{name}/q"] = np.asarray(dataset["abs_q_mean"].isel(time=-1))
        arrays[f"{name}/steady"] = steady_overlaps(rule, taus, omegas)
        arrays[f"{name}/fine"] = steady_overlaps(rule, fine_taus, fine_omegas)
        arrays[f"{name}/transition"] = _transition(rule, taus)
        arrays[f"{name}/fine/transition"] = _transition(rule, fine_taus)
    return arrays


def steady_overlaps(rule: Any, taus: np.ndarray, omegas: np.ndarray) -> np.ndarray:
    """Returns the steady overlaps, of shape (taus, omegas)."""

    def steady_overlap(tau: Any, omega: Any) -> Any:
        return ino.steady_state(ino.Config(rule(tau), ino.SpikedModel(omega=omega)))[0]

    on_grid = jax.vmap(jax.vmap(steady_overlap, (None, 0)), (0, None))
    return np.asarray(on_grid(jnp.asarray(taus), jnp.asarray(omegas)))


def _transition(rule: Any, taus: np.ndarray) -> np.ndarray:
    """Returns `omega_c` at each rate."""
    critical = jax.vmap(lambda tau: ino.critical_snr(rule(tau)))
    return np.asarray(critical(jnp.asarray(taus)))
