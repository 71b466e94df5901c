"""Simulations, theory and bounds of three components among three spikes."""

import dataclasses
from typing import Any

import jax.random as jr
import numpy as np

import inopca_jax as ino

from ..claim import Arrays
from ..learning_curves import TAU

OMEGAS, Q0 = (4.0, 2.0, 1.0), 0.2
# The p-dimensional algorithm takes a time of p^2.
P, LARGE_P = 400, 4000
T_MAX, LATE = 20.0, 200.0
CHAIN, STREAM, LARGE = "chain", "p-dimensional", "chain, large p"


def configs(quick: bool = False) -> dict[str, ino.Config]:
    """Returns the config at both dimensions, one of components that begin with an overlap
    with every spike, and one of each component alone."""
    own, mixed = Q0 * np.eye(len(OMEGAS)), np.full((len(OMEGAS),) * 2, Q0)
    together = {f"p = {p:,}": _config(p, OMEGAS, own) for p in (P, LARGE_P)}
    alone = {f"omega = {omega:g} alone": _config(P, omega, Q0) for omega in OMEGAS}
    return together | {"mixed start": _config(P, OMEGAS, mixed)} | alone


def _config(p: int, omega: Any, q0: Any) -> ino.Config:
    model, ts = ino.SpikedModel(p=p, omega=omega), np.linspace(0.0, T_MAX, 41)
    start, components = ino.WarmStart(q0), np.size(omega)
    return ino.Config(ino.InoPCA(TAU), model, start, ts, components=components)


def compute(quick: bool = False) -> Arrays:
    """Returns trials of both engines, the matrix ODE, the ODE of each component alone, the
    steady state, and the bound of offline PCA."""
    small, large, mixed, *alone = configs(quick).values()
    few, many = (20, 100) if quick else (40, 400)
    arrays: Arrays = dict(ts=np.asarray(small.ts))
    runs = {
        CHAIN: ino.simulate(small, key=jr.key(0), trials=many),
        STREAM: ino.simulate(small, key=jr.key(1), trials=few, engine=ino.Stream()),
        LARGE: ino.simulate(large, key=jr.key(2), trials=few),
    }
    for name, run in runs.items():
        arrays |= _to_arrays(name, run)
    for name, config in dict(theory=small, mixed=mixed).items():
        ts = np.append(np.asarray(config.ts), LATE)
        path = _to_arrays(name, ino.mean_field(dataclasses.replace(config, ts=ts)))
        arrays |= {key: values[:-1] for key, values in path.items()}
        arrays |= {f"late {key}": values[-1] for key, values in path.items()}
    paths = [np.asarray(ino.mean_field(config).q) for config in alone]
    arrays["alone/q"] = np.stack(paths, axis=-1)
    q, lam = ino.steady_state(small)
    arrays |= {"steady/q": np.asarray(q), "steady/lam": np.asarray(lam)}
    arrays["steady/distance"] = np.asarray(ino.steady_distance(small))
    offline = np.asarray(ino.offline_overlap(np.array(OMEGAS), arrays["ts"][:, None]))
    arrays["offline/q"] = offline
    arrays["offline/distance"] = np.sqrt(np.sum(np.arccos(offline) ** 2, axis=-1))
    return arrays


def _to_arrays(name: str, run: Any) -> Arrays:
    """Returns the overlaps of the components with their own spikes, the norms, and the
    Grassmann distance."""
    return {
        f"{name}/q": np.asarray(run.matched_overlaps()),
        f"{name}/lam": np.asarray(run.norms),
        f"{name}/distance": np.asarray(run.grassmann_distance()),
    }
