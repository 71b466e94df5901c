"""The numbers of `fig:comparison` and of the claims about it."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

import inopca_jax as ino

from ..claim import Arrays
from ..learning_curves import OMEGA, REFERENCE_P, TAU, P, compute_overlaps, paper_config

# Oja's method with the rate of INO-PCA, and with the rate that has its steady state.
INO, OJA_SAME_RATE, OJA_SAME_END = (
    "INO-PCA, tau = 0.5",
    "Oja, tau = 0.5",
    "Oja, tau = 0.25",
)
INO_LAM0, T_MAX = 0.5, 50.0
# The mean field is computed from the typical overlap of a cold start at p = 10,000, at
# these times: for INO-PCA at tau = 0.5 from the norms LAM0S and, to tune it, for all pairs
# of TAUS and TUNED_LAM0S; for Oja's method at the rates OJA_TAUS.
Q0, TIMES = 0.01, np.linspace(0.0, 60.0, 201)
LAM0S = np.append(INO_LAM0, np.geomspace(0.05, 100.0, 23))
TAUS, TUNED_LAM0S = np.geomspace(0.05, 3.0, 24), np.append(1.0, np.geomspace(0.1, 10.0, 9))
OJA_TAUS = np.linspace(0.05, 1.5, 59)
# The signal-to-noise ratios at which the steady states are compared.
OMEGAS = np.array([0.3, 0.5, 1.0, 2.0, 4.0])


def configs(quick: bool = False) -> dict[str, ino.Config]:
    """Returns the configs of INO-PCA and of Oja's method with two rates."""
    return {
        INO: _cold_config(ino.InoPCA(TAU), INO_LAM0),
        OJA_SAME_RATE: _cold_config(ino.Oja(TAU)),
        OJA_SAME_END: _cold_config(ino.Oja(TAU / (1 + OMEGA))),
    }


def _cold_config(rule: ino.AbstractRule, lam0: float = 1.0, p: int = P) -> ino.Config:
    return paper_config(rule, t_max=T_MAX, start=ino.ColdStart(lam0=lam0), p=p)


def compute(quick: bool = False) -> Arrays:
    """Returns theory and trials from the cold start, the best overlaps that any gain and
    offline PCA reach, and the mean field for many rates, initial norms and signals."""
    reference = _cold_config(ino.InoPCA(TAU), INO_LAM0, REFERENCE_P)
    arrays = compute_overlaps(configs(), seed=13, reference=None if quick else reference)
    best = _cold_config(ino.AdaptiveInoPCA())
    arrays["best gain/q"] = np.asarray(ino.cold_start_law(best).law.q)
    arrays["offline/q"] = np.asarray(ino.offline_overlap(OMEGA, best.ts))
    with jax.enable_x64(True):
        return arrays | _mean_fields() | _steady_states()


def _mean_fields() -> Arrays:
    """The overlaps at the times TIMES, of shape (cases, times)."""
    lam0s = np.concatenate([LAM0S, np.tile(TUNED_LAM0S, len(TAUS))])
    taus = np.concatenate([np.full(LAM0S.shape, TAU), np.repeat(TAUS, len(TUNED_LAM0S))])
    ours = _overlaps(ino.InoPCA, taus, lam0s)
    return {
        "mean field/INO-PCA": ours[: len(LAM0S)],
        "mean field/INO-PCA, tuned": ours[len(LAM0S) :],
        "mean field/Oja": _overlaps(ino.Oja, OJA_TAUS, np.ones_like(OJA_TAUS)),
    }


def _overlaps(rule: type, taus: np.ndarray, lam0s: np.ndarray) -> np.ndarray:
    def overlap(tau: Array, lam0: Array) -> Array:
        return ino.mean_field(_config(rule(tau), OMEGA, lam0)).q

    return np.asarray(jax.jit(jax.vmap(overlap))(jnp.asarray(taus), jnp.asarray(lam0s)))


def _steady_states() -> Arrays:
    """The steady overlaps by signal, and those of Oja's method by rate."""

    def overlaps(omega: Array) -> tuple[Array, Array]:
        ours, theirs = ino.InoPCA(TAU), ino.Oja(TAU / (1 + omega))
        steady = [ino.steady_state(_config(rule, omega))[0] for rule in (ours, theirs)]
        return steady[0], steady[1]

    ours, theirs = jax.jit(jax.vmap(overlaps))(jnp.asarray(OMEGAS))
    by_rate = jax.vmap(lambda tau: ino.steady_state(_config(ino.Oja(tau), OMEGA))[0])
    return {
        "steady/INO-PCA": np.asarray(ours),
        "steady/Oja": np.asarray(theirs),
        "steady/Oja by rate": np.asarray(by_rate(jnp.asarray(OJA_TAUS))),
    }


def _config(
    rule: ino.AbstractRule, omega: float | Array, lam0: float | Array = 1.0
) -> ino.Config:
    return ino.Config(rule, ino.SpikedModel(omega=omega), ino.WarmStart(Q0, lam0), TIMES)
