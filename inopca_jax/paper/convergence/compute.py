"""The numbers of the figure `convergence`, and the fits of powers of p to them."""

import jax.random as jr
import numpy as np

import inopca_jax as ino

from ..learning_curves import OMEGA, TAU, Arrays, P

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

_COLUMNS = ("p", "trials", "q", "q_error", "q_std", "q_std_error")
_COLUMNS += ("lam", "lam_error", "lam_std", "lam_std_error")


def configs(quick: bool = False) -> dict[str, ino.Config]:
    """Returns a config for each dimension, and one with the opposite initial overlap."""
    by_dimension = {f"p = {p:,}": _config(p) for p in (QUICK if quick else FULL)}
    mirrored = _config(MIRRORED_P, -Q0)
    return by_dimension | {f"p = {MIRRORED_P:,}, q0 = -{Q0:g}": mirrored}


def _config(p: int, q0: float = Q0) -> ino.Config:
    model = ino.SpikedModel(p=p, omega=OMEGA)
    return ino.Config(ino.InoPCA(TAU), model, ino.WarmStart(q0), np.array([TIME]))


def compute(quick: bool = False) -> Arrays:
    """Returns means and standard deviations over trials, with their errors, by dimension;
    the same from -Q0, as `mirrored/...`; and the predictions, as `theory/...`, in units of
    the power of p by which they fall."""
    trials = QUICK if quick else FULL
    rows = []
    for number, config in enumerate(configs(quick).values()):
        p = int(config.model.p)
        key = jr.fold_in(jr.key(5), number)
        runs = ino.simulate(config, key=key, trials=trials[p])
        q, lam = (np.asarray(x, float)[:, 0] for x in (runs.q, runs.lam))
        rows.append([p, trials[p], *_moments(q), *_moments(lam)])
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    table = dict(zip(_COLUMNS, columns, strict=True))
    arrays = {name: column[:-1] for name, column in table.items()}
    arrays |= {f"mirrored/{k}": np.asarray(column[-1]) for k, column in table.items()}
    # With a constant rate the predictions depend on p by these powers alone.
    theory = ino.fluctuations(_config(P))
    for quantity in ("q", "lam"):
        for name, power in (("", 0), ("_shift", 1), ("_std", 0.5)):
            value = float(getattr(theory, quantity + name)[0]) * P**power
            arrays[f"theory/{quantity}{name}"] = np.array(value)
    return arrays


def _moments(values: np.ndarray) -> tuple[float, float, float, float]:
    """The mean and the standard deviation, each followed by its standard error."""
    std, centred = values.std(ddof=1), values - values.mean()
    variance_of_squares = np.mean(centred**4) - np.mean(centred**2) ** 2
    root = len(values) ** 0.5
    std_error = np.sqrt(variance_of_squares) / root / (2 * std)
    return values.mean(), std / root, std, std_error


def distance_from_ode(arrays: Arrays) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns the dimensions with enough trials, the distances of the mean overlap from
    the ODE there, and their standard errors."""
    shown = arrays["p"] <= LARGEST_P_FOR_MEANS
    distance = np.abs(arrays["q"] - arrays["theory/q"])
    return arrays["p"][shown], distance[shown], arrays["q_error"][shown]


def fitted_slope(p: np.ndarray, y: np.ndarray, error: np.ndarray) -> tuple[float, float]:
    """Returns the power of p by which y falls, fitted from `SMALLEST_P_FOR_SLOPES` on, and
    its standard error."""
    fitted = p >= SMALLEST_P_FOR_SLOPES
    return log_log_slope(p[fitted], y[fitted], error[fitted])


def log_log_slope(x: np.ndarray, y: np.ndarray, error: np.ndarray) -> tuple[float, float]:
    """Returns the slope of log y over log x by weighted least squares, and its standard
    error."""
    weights = (y / error) ** 2
    log_x = np.log(x)
    log_x = log_x - np.sum(weights * log_x) / np.sum(weights)
    norm = np.sum(weights * log_x**2)
    return float(np.sum(weights * log_x * np.log(y)) / norm), float(norm**-0.5)
