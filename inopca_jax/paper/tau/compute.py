"""INO-PCA at fixed and adaptive learning rates."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

import inopca_jax as ino

from ..claim import Arrays
from ..learning_curves import OMEGA, REFERENCE_P, P, compute_overlaps, paper_config

T_MAX, TAUS = 50.0, (0.1, 0.25, 0.5, 1.0)
ADAPTIVE = "adaptive"
# Rates besides those of the figure: for the limit, and, large ones, from a cold start.
ALL_TAUS, LARGE_TAUS = np.geomspace(0.01, 4.0, 41), (1.5, 2.0, 3.0)
# The gains among which the best is searched for, at overlaps and signals of a grid.
GAINS, OVERLAPS, OMEGAS = (
    np.linspace(0.0, 4.0, 4001),
    np.linspace(0.0, 0.95, 20),
    np.array([0.1, 0.5, 1.0, 3.0]),
)


def name_of(tau: float) -> str:
    """Returns the name of the config with a fixed rate."""
    return f"tau = {tau:g}"


def configs(quick: bool = False) -> dict[str, ino.Config]:
    """Returns configs with fixed rates and with the adaptive one, from a cold start."""
    rules = {name_of(tau): ino.InoPCA(tau) for tau in TAUS}
    rules[ADAPTIVE] = ino.AdaptiveInoPCA()
    return {name: _cold_config(rule) for name, rule in rules.items()}


def _cold_config(rule: ino.AbstractRule, p: int = P) -> ino.Config:
    return paper_config(rule, t_max=T_MAX, start=ino.ColdStart(), p=p)


def compute(quick: bool = False) -> Arrays:
    """Returns theory and trials from the cold start; the limit from q0 = 0.1 for many
    rates; the best gain by search; and theory for large rates from the cold start."""
    reference = _cold_config(ino.InoPCA(TAUS[-1]), REFERENCE_P)
    arrays = compute_overlaps(configs(), seed=11, reference=None if quick else reference)

    def overlap(tau: Float[Array, ""]) -> jax.Array:
        return ino.mean_field(paper_config(ino.InoPCA(tau), t_max=T_MAX)).q

    warm = paper_config(ino.AdaptiveInoPCA(), t_max=T_MAX)
    taus = jnp.asarray(ALL_TAUS, float)
    arrays["limit/fixed"] = np.asarray(jax.vmap(overlap)(taus))
    arrays["limit/adaptive"] = np.asarray(ino.mean_field(warm).q)
    arrays["limit/best"] = np.asarray(ino.oracle_overlap(OMEGA, 0.1, warm.ts))
    for tau in LARGE_TAUS:
        law, _ = ino.cold_start_law(_cold_config(ino.InoPCA(tau)))
        arrays[f"large/{tau}"] = np.asarray(law.q)
    return arrays | _best_gains()


def _best_gains() -> Arrays:
    """Returns, for each signal and overlap, the gain of a fine grid that raises the overlap
    fastest, and the gain of the adaptive rate."""

    def dq_dt(
        omega: Float[Array, ""], q: Float[Array, ""], gain: Float[Array, ""]
    ) -> Float[Array, ""]:
        # The gain of Oja's method is its rate.
        config = paper_config(ino.Oja(gain), t_max=T_MAX, omega=omega)
        return ino.velocity(config, q, 1.0, 1.0)[0]

    by_gain = jax.vmap(dq_dt, (None, None, 0))
    by_overlap = jax.vmap(by_gain, (None, 0, None))
    by_omega = jax.jit(jax.vmap(by_overlap, (0, None, None)))
    # At q = 0 the velocity is zero for every gain, so the first overlap is a little above.
    overlaps, adaptive = np.maximum(OVERLAPS, 0.01), []
    # In double precision, because the parabola is flat near its maximum.
    with jax.enable_x64(True):
        grids = (jnp.asarray(a, float) for a in (OMEGAS, overlaps, GAINS))
        searched = GAINS[np.argmax(by_omega(*grids), axis=-1)]
        q = jnp.asarray(overlaps, float)
        path = ino.Trajectory(np.zeros(q.size), q, jnp.ones(q.size))
        for omega in OMEGAS:
            rule = ino.AdaptiveInoPCA()
            config = paper_config(rule, t_max=T_MAX, omega=float(omega))
            adaptive.append(np.asarray(ino.effective_gain(config, path)))
    return {"gain/searched": searched, "gain/adaptive": np.stack(adaptive)}
