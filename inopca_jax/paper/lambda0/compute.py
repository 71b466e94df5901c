"""Learning curves, paths and the phase portrait for many initial norms."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

import inopca_jax as ino

from ..claim import Arrays
from ..learning_curves import (
    OMEGA,
    TAU,
    UNLEARNED_NORM,
    compute_overlaps,
    linearised,
    paper_config,
)

# The norms of the learning curves, and their times.
LAM0S, T_MAX, POINTS = (0.05, 0.25, 0.5, 1.0, 1.8, 4.0), 30.0, 61
# The norms at which the portrait's paths begin, and the overlap there.
PORTRAIT_LAM0S, PORTRAIT_Q0 = (0.1, 0.3, 0.6, 0.9, 1.5, 1.8, 2.4, 3.0), 0.01
# The grid on which the portrait's flow is computed.
PORTRAIT_Q, PORTRAIT_LAM = np.linspace(0.0, 1.0, 41), np.linspace(0.05, 3.0, 41)
# Many norms from which the ODEs are solved, from this overlap and PORTRAIT_Q0, and the
# times.
MANY_LAM0S, WARM_Q0 = np.geomspace(0.01, 100.0, 161), 0.1
LONG_TS = np.linspace(0.0, 60.0, 601)
# A fine grid of norms on which the initial velocity of the overlap is compared.
FINE_LAM0S = np.linspace(0.02, 2.0, 1981)


def name_of(lam0: float) -> str:
    """Returns the name of the config with this initial norm."""
    return f"lam0 = {lam0:g}"


def configs(quick: bool = False) -> dict[str, ino.Config]:
    """Returns a config for each initial norm."""
    starts = {name_of(lam0): ino.WarmStart(q0=WARM_Q0, lam0=lam0) for lam0 in LAM0S}
    return {
        name: paper_config(ino.InoPCA(TAU), t_max=T_MAX, points=POINTS, start=start)
        for name, start in starts.items()
    }


def compute(quick: bool = False) -> Arrays:
    """Returns the learning curves; the portrait's flow, paths and fixed points; paths from
    many norms; and the norms from which the overlap first rises fastest, or falls."""
    arrays = compute_overlaps(configs(), seed=12)
    velocities = velocity(*np.meshgrid(PORTRAIT_Q, PORTRAIT_LAM))
    arrays["portrait/flow"] = np.stack([np.asarray(v) for v in velocities])
    return arrays | _paths() | _initial_velocities() | _fixed_points()


def _paths() -> Arrays:
    """Returns the portrait's paths, of which the first begins at the unlearned norm, and
    those from many norms, from a small ("cold") and a larger ("warm") overlap."""
    portrait = [UNLEARNED_NORM, *PORTRAIT_LAM0S]
    lam0s = np.concatenate([portrait, MANY_LAM0S, MANY_LAM0S])
    q0s = np.full(len(lam0s), PORTRAIT_Q0)
    q0s[-len(MANY_LAM0S) :] = WARM_Q0
    q, lam = _mean_fields(jnp.asarray(q0s, float), jnp.asarray(lam0s, float))
    ends = len(portrait), len(portrait) + len(MANY_LAM0S)
    arrays: Arrays = {}
    for field, values in (("q", q), ("lam", lam)):
        parts = np.split(np.asarray(values), ends)
        for name, part in zip(("portrait", "cold", "warm"), parts, strict=True):
            arrays[f"{name}/{field}"] = part
    return arrays


@jax.jit
@jax.vmap
def _mean_fields(q0: Float[Array, ""], lam0: Float[Array, ""]) -> tuple[Array, Array]:
    start = ino.WarmStart(q0, lam0)
    path = ino.mean_field(ino.Config(ino.InoPCA(TAU), start=start, ts=LONG_TS))
    return path.q, path.lam


def velocity(q: Array | np.ndarray, lam: Array | np.ndarray) -> tuple[Array, Array]:
    """Returns the right-hand sides of eq:Q_t and eq:lambda_t."""
    return ino.velocity(ino.Config(ino.InoPCA(TAU)), q, lam)


def _initial_velocities() -> Arrays:
    """Returns, for two overlaps, the norm from which the overlap first rises fastest, by
    search and in closed form, and the largest norm from which it falls."""
    arrays: Arrays = {}
    for q0 in (PORTRAIT_Q0, WARM_Q0):
        dq_dt, _ = velocity(np.full(len(FINE_LAM0S), q0), FINE_LAM0S)
        dq_dt = np.asarray(dq_dt)
        arrays[f"fastest/{q0}"] = np.asarray(FINE_LAM0S[np.argmax(dq_dt)])
        arrays[f"closed form/{q0}"] = np.asarray(ino.best_lam0(TAU, OMEGA, q0))
        arrays[f"falls/{q0}"] = np.asarray(FINE_LAM0S[dq_dt < 0].max(initial=0))
    return arrays


def _fixed_points() -> Arrays:
    """Returns the fixed points (q, lam), and the eigenvalues of the Jacobian there."""
    steady = ino.steady_state(ino.Config(ino.InoPCA(TAU)))
    points = np.array([(0, UNLEARNED_NORM), steady], float)
    _, eigenvalues = linearised(points[:, 0], points[:, 1], np.full(2, OMEGA))
    return {"fixed/points": points, "fixed/eigenvalues": eigenvalues}
