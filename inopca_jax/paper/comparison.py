"""INO-PCA against Oja's method, from a cold start, and how good any algorithm can be.

INO-PCA has tau = 0.5 and lam0 = 0.5. Points are means of 20 trials of the exact chain at
p = 10,000 with a third of their standard deviation, lines and bands what theory says of
them, open markers trials of the p-dimensional algorithm. In grey, beyond the paper, the
best that any gain does from this start, and offline PCA on all samples so far.
"""

from typing import Any

import jax
import matplotlib.pyplot as plt
import numpy as np
from jaxtyping import Array
from matplotlib.figure import Figure

from .. import plot
from .._config import Config
from .._model import SpikedModel
from .._order_parameters import mean_field, offline_overlap, steady_state
from .._rule import AbstractRule, AdaptiveInoPCA, InoPCA, Oja
from .._start import ColdStart, WarmStart
from .._types import Real, real
from .cold_start import cold_law, cold_learned
from .comparison_claims import (
    BOLD,
    HALF,
    HORIZON,
    INO,
    INO_LAM0,
    LAM0S,
    OJA_TAUS,
    OMEGAS,
    Q0,
    TAUS,
    TUNED_LAM0S,
    claims,
)
from .curves import OMEGA, TAU, TRIALS, Arrays, curves, setting
from .overlap_panel import limit_line, overlap_panel

T_MAX = 50.0


def configs(quick: bool = False) -> dict[str, Config]:
    """INO-PCA, Oja's method with its rate, and with that which ends as well."""
    pairs = {
        INO: (InoPCA(TAU), ColdStart(lam0=INO_LAM0)),
        BOLD: (Oja(TAU), ColdStart()),
        HALF: (Oja(TAU / (1 + OMEGA)), ColdStart()),
    }
    return {n: setting(rule, t_max=T_MAX, start=x) for n, (rule, x) in pairs.items()}


def compute(quick: bool = False) -> Arrays:
    """Theory and trials from the cold start, with the best that any gain does; and the
    limit of large p, for many rates, norms and signals."""
    until = None if quick else {INO: 6.0}
    found = cold_learned(configs(quick), trials=TRIALS, seed=13, witness=until)
    best = setting(AdaptiveInoPCA(), t_max=T_MAX, start=ColdStart())
    found["best gain/q"] = np.asarray(cold_law(best).law.q)
    found["offline/q"] = np.asarray(offline_overlap(OMEGA, best.ts))
    with jax.enable_x64(True):
        return found | _limits()


def _limits() -> Arrays:
    ones = np.ones_like
    ino = np.array([(tau, lam0) for tau in TAUS for lam0 in TUNED_LAM0S])
    ino = np.concatenate([np.stack([TAU * ones(LAM0S), LAM0S], axis=1), ino])
    found: Arrays = {"oja/q": _overlaps(Oja, OJA_TAUS, ones(OJA_TAUS))}
    found["ino/q"], found["tuned/q"] = np.split(_overlaps(InoPCA, *ino.T), [len(LAM0S)])

    @jax.jit
    @jax.vmap
    def steady(omega: Real) -> tuple[Real, ...]:
        rules = InoPCA(TAU), Oja(TAU / (1 + omega))
        return tuple(steady_state(_config(rule, omega))[0] for rule in rules)

    ends = jax.vmap(lambda tau: steady_state(_config(Oja(tau), real(OMEGA)))[0])
    found["steady/oja"] = np.asarray(ends(real(OJA_TAUS)))
    found["steady/INO"], found["steady/Oja"] = map(np.asarray, steady(real(OMEGAS)))
    return found


def _config(rule: AbstractRule, omega: Real, lam0: Any = 1.0) -> Config:
    return Config(rule, SpikedModel(omega=omega), WarmStart(Q0, lam0), HORIZON)


def _overlaps(kind: type, taus: np.ndarray, lam0s: np.ndarray) -> np.ndarray:
    """In the limit, from the overlap Q0."""

    def one(tau: Real, lam0: Real) -> Array:
        return mean_field(_config(kind(tau), real(OMEGA), lam0)).q

    return np.asarray(jax.jit(jax.vmap(one))(real(taus), real(lam0s)))


def draw(found: Arrays) -> Figure:
    """The overlaps, and the limits."""
    with plot.style():
        figure, ax = plt.subplots(figsize=(4.6, 3.8))
        names = overlap_panel(ax, curves(found))
        ts = found[f"{INO}/theory/ts"]
        names += [
            limit_line(ax, ts, found["best gain/q"], "best gain, oracle", ":"),
            limit_line(ax, ts, found["offline/q"], "offline PCA", "--"),
        ]
        figure.legend(handles=names, loc="outside upper center", ncols=2)
    return figure


__all__ = ["claims", "compute", "configs", "draw"]
