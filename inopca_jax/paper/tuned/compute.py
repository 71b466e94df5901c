"""The numbers of the figure `tuned`."""

from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float

import inopca_jax as ino

from ..claim import Arrays
from ..learning_curves import OMEGA, TAU, TRIALS, paper_config, to_arrays

Q0, T_END, KNOTS = 0.1, 20.0, 32
PAPER, BEST_RATE, BEST_RATE_AND_NORM, BEST_SCHEDULE = CASES = (
    "the paper's tau = 0.5",
    "best tau",
    "best tau and lam0",
    "best schedule",
)
# At these horizons tau = 0.5 is compared with other constant rates. All are times at which
# the mean field is computed.
HORIZONS = np.array([2.0, 5, 8, 10, 15, 20, 30, 40, 50, 75, 100])
CONSTANT_RATES = np.geomspace(0.05, 2.0, 61)


def configs(quick: bool = False) -> dict[str, ino.Config]:
    """Returns the configs that tuning begins from, with a constant rate and a schedule."""
    return {
        "constant": _config(ino.InoPCA(TAU)),
        "schedule": _config(ino.InoPCA(_constant_schedule(TAU))),
    }


def _config(rule: ino.InoPCA, lam0: float | Array = 1.0) -> ino.Config:
    return paper_config(rule, t_max=T_END, start=ino.WarmStart(Q0, lam0))


def _constant_schedule(tau: float) -> ino.Interpolated:
    return ino.Interpolated.flat(tau, T_END, KNOTS)


def compute(quick: bool = False) -> Arrays:
    """Returns the mean field and the gain of the tuned configs, trials of two of them, and
    the mean field at constant rates."""
    initial = configs(quick)
    constant, schedule = initial["constant"], initial["schedule"]
    tuned = {
        BEST_RATE: ino.tune(constant),
        BEST_RATE_AND_NORM: ino.tune(constant, over=("rule.tau", "start.lam0")),
        BEST_SCHEDULE: ino.tune(schedule, over="rule.tau.taus"),
    }
    arrays: Arrays = {
        f"{name}/{field}": np.array(getattr(result, field))
        for name, result in tuned.items()
        for field in ("bound", "gap")
    }
    # Every rate as a schedule, so that one compiled program serves all.
    rates = {PAPER: np.full(KNOTS, TAU, np.float32)}
    norms = {PAPER: np.asarray(1, np.float32)}
    for name, result in tuned.items():
        rate: Any = result.config.rule.tau
        taus = rate.taus if name == BEST_SCHEDULE else np.full(KNOTS, rate.value)
        rates[name] = np.asarray(taus)
        norms[name] = np.asarray(result.config.start.lam0)  # pyright: ignore
    arrays["lam0"] = norms[BEST_RATE_AND_NORM]
    ts = np.asarray(constant.ts)
    arrays |= _mean_fields(rates, norms, ts)
    knots = _constant_schedule(TAU).ts
    for number, name in enumerate(CASES):
        rule = ino.InoPCA(ino.Interpolated(knots, jnp.asarray(rates[name])))
        config = _config(rule, jnp.asarray(norms[name]))
        q, lam = (jnp.asarray(arrays[f"{name}/theory/{x}"]) for x in ("q", "lam"))
        gain = ino.effective_gain(config, ino.Trajectory(config.ts, q, lam))
        arrays[f"{name}/gain"] = np.asarray(gain)
        if name in (PAPER, BEST_SCHEDULE):
            key = jr.fold_in(jr.key(13), number)
            runs = ino.simulate(config, key=key, trials=TRIALS)
            arrays |= to_arrays(f"{name}/runs", runs)
    arrays["ts"] = ts
    arrays["oracle"] = np.asarray(ino.oracle_overlap(OMEGA, Q0, ts))
    arrays["oracle/horizons"] = np.asarray(ino.oracle_overlap(OMEGA, Q0, HORIZONS))
    return arrays


def times_of_mean_field(ts: np.ndarray) -> np.ndarray:
    """Returns the times `ts` and, after them, the later horizons."""
    return np.append(ts, HORIZONS[ts[-1] < HORIZONS])


def _mean_fields(
    rates: dict[str, np.ndarray], norms: dict[str, np.ndarray], ts: np.ndarray
) -> Arrays:
    """The mean field of each case at the times `ts`, and the overlaps of all constant rates
    at the horizons."""
    all_rates = [*rates.values(), *(np.full(KNOTS, x, np.float32) for x in CONSTANT_RATES)]
    all_norms = [*norms.values(), *np.ones(len(CONSTANT_RATES), np.float32)]
    all_times = times_of_mean_field(ts)
    knots, model = _constant_schedule(TAU).ts, _config(ino.InoPCA(TAU)).model

    def mean_field(taus: Float[Array, " knots"], lam0: Array) -> tuple[Array, Array]:
        rule = ino.InoPCA(ino.Interpolated(knots, taus))
        start = ino.WarmStart(Q0, lam0)
        path = ino.mean_field(ino.Config(rule, model, start, all_times))
        return path.q, path.lam

    paths = jax.vmap(mean_field)(jnp.asarray(np.stack(all_rates)), jnp.asarray(all_norms))
    q, lam = map(np.asarray, paths)
    horizons = np.searchsorted(all_times, HORIZONS - 1e-6)
    arrays = {"constants/tau": CONSTANT_RATES, "constants/q": q[len(rates) :, horizons]}
    for i, name in enumerate(rates):
        arrays[f"{name}/theory/ts"] = ts
        arrays[f"{name}/theory/q"] = q[i, : len(ts)]
        arrays[f"{name}/theory/lam"] = lam[i, : len(ts)]
    return arrays


def oracle_gain(q: np.ndarray) -> np.ndarray:
    """Returns the best gain at the overlap q, of eq:optimal_nu_t."""
    return OMEGA * (1 - q**2) / (OMEGA * q**2 + 1)
