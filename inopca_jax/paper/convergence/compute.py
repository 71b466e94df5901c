"""The numbers of the figure `convergence`, and the fits of powers of p to them."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array

import inopca_jax as ino

from ..claim import Arrays
from ..learning_curves import OMEGA, TAU
from ..statistics import Mean, mean_of, std_of

Q0, TIME = 0.4, 3.0
# Trials by dimension. To see a distance of order 1/p in a mean that scatters by 1/sqrt(p)
# takes trials in proportion to p, so the largest p shows the scatter alone.
FULL = {50: 20_480, 200: 20_480, 800: 20_480, 3200: 14_336, 1_000_000: 32}
QUICK = {200: 8192, 800: 8192}
LARGEST_P_FOR_MEANS = 3200
# Slopes are fitted from this p on; below it, higher orders in 1/p matter.
SMALLEST_P_FOR_SLOPES = 200
# The dimension that is also simulated from -Q0.
MIRRORED_P = 200


def configs(quick: bool = False) -> dict[str, ino.Config]:
    """Returns a config for each dimension, and one with the opposite initial overlap."""
    by_dimension = {f"p = {p:,}": _config(p) for p in (QUICK if quick else FULL)}
    mirrored = _config(MIRRORED_P, -Q0)
    return by_dimension | {f"p = {MIRRORED_P:,}, q0 = -{Q0:g}": mirrored}


def _config(p: int | Array, q0: float = Q0) -> ino.Config:
    model = ino.SpikedModel(p=p, omega=OMEGA)
    return ino.Config(ino.InoPCA(TAU), model, ino.WarmStart(q0), np.array([TIME]))


def compute(quick: bool = False) -> Arrays:
    """Returns means and standard deviations over trials, with their errors, by dimension;
    the same from -Q0, as `mirrored/...`; and the predictions, as `theory/...`."""
    trials, rows = QUICK if quick else FULL, []
    for number, config in enumerate(configs(quick).values()):
        p = int(config.model.p)
        key = jr.fold_in(jr.key(5), number)
        runs = ino.simulate(config, key=key, trials=trials[p])
        row = {"p": p}
        for quantity in ("q", "lam"):
            values = np.asarray(getattr(runs, quantity))[:, 0]
            for name, mean in (("", mean_of(values)), ("_std", std_of(values))):
                row[quantity + name] = mean.value
                row[f"{quantity}{name}_error"] = mean.error
        rows.append(row)
    *by_dimension, mirrored = rows
    arrays = {name: np.array([row[name] for row in by_dimension]) for name in mirrored}
    arrays |= {f"mirrored/{name}": np.array(value) for name, value in mirrored.items()}
    predict = lambda p: ino.fluctuations(_config(p))
    theory = jax.vmap(predict)(jnp.asarray(arrays["p"], float))
    for name in ("q", "q_shift", "q_std", "lam_std"):
        arrays[f"theory/{name}"] = np.asarray(getattr(theory, name))[:, 0]
    return arrays


def distance_from_ode(arrays: Arrays) -> tuple[np.ndarray, Mean, np.ndarray]:
    """Returns the dimensions with enough trials, and the distances of the mean overlap from
    the ODE there, measured and predicted."""
    shown = arrays["p"] <= LARGEST_P_FOR_MEANS
    distance = np.abs(arrays["q"] - arrays["theory/q"])
    predicted = np.abs(arrays["theory/q_shift"])
    return arrays["p"][shown], Mean(distance, arrays["q_error"])[shown], predicted[shown]


def fitted_slope(p: np.ndarray, y: Mean) -> Mean:
    """Returns the power of p by which y falls, fitted from `SMALLEST_P_FOR_SLOPES` on."""
    fitted = p >= SMALLEST_P_FOR_SLOPES
    return log_log_slope(p[fitted], y[fitted])


def log_log_slope(x: np.ndarray, y: Mean) -> Mean:
    """Returns the slope of log y over log x by weighted least squares."""
    weights = y.standard_errors**2
    log_x = np.log(x)
    log_x = log_x - np.sum(weights * log_x) / np.sum(weights)
    norm = np.sum(weights * log_x**2)
    return Mean(np.sum(weights * log_x * np.log(y.value)) / norm, norm**-0.5)
