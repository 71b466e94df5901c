"""What the paper says about the overlap and the norm over time."""

from typing import Any

import numpy as np

from ..claim import Claim, verdict
from ..figure import Arrays
from ..learning_curves import OMEGA, from_arrays
from .compute import T_MAX

# The largest difference of the trials' mean from theory, in standard errors, and the
# largest distance of the ODE from its limit at T_MAX, that count as agreement.
MAX_STANDARD_ERRORS, MAX_DISTANCE = 4.0, 1e-3


def claims(arrays: Arrays) -> list[Claim]:
    """Returns the checked claims."""
    theory, runs = (from_arrays(arrays, f"INO-PCA/{x}") for x in ("theory", "runs"))
    return [
        _ode_predicts(theory, runs, "q", "Q_t", "eq:Q_t"),
        _ode_predicts(theory, runs, "lam", "lambda_t", "eq:lambda_t"),
        _norm_grows(theory, runs),
    ]


def _ode_predicts(theory: Any, runs: Any, field: str, symbol: str, source: str) -> Claim:
    """Checks that the trials' mean is close to the ODE at all times.

    Standard errors follow from the predicted standard deviations. Those measured over 20
    trials have an error of a sixth, and the smallest of a hundred would be far too small.
    """
    values, ode = (np.asarray(getattr(run, field), float) for run in (runs, theory))
    shift, std = (
        np.asarray(getattr(theory, f"{field}_{x}"), float) for x in ("shift", "std")
    )
    ts = np.asarray(theory.ts)
    fluctuates = std > 1e-6  # all times, except for the norm at the start
    gap, error = values.mean(axis=0) - ode, std / len(values) ** 0.5
    standard_errors = np.abs(gap[fluctuates] / error[fluctuates])
    worst = int(np.argmax(standard_errors))
    ratio = values.std(axis=0, ddof=1)[fluctuates] / std[fluctuates]
    widest = int(np.argmax(np.abs(shift)))
    return Claim(
        source,
        f"the ODE accurately predicts {symbol}",
        float(gap[fluctuates][worst]),
        float(error[fluctuates][worst]),
        f"the mean of {len(values)} trials differs from the ODE by at most "
        f"{np.abs(gap).max():.4f}, and by at most {standard_errors.max():.1f} standard "
        f"errors (at t = {ts[fluctuates][worst]:.3g}); at this p theory predicts a "
        f"difference of up to {shift[widest]:+.4f}, at t = {ts[widest]:.3g}. The measured "
        f"standard deviations are {ratio.min():.2f} to {ratio.max():.2f} times the "
        "predicted ones",
        verdict(bool(standard_errors.max() < MAX_STANDARD_ERRORS)),
        "holds",
        "The ODE is the limit of large p: trials scatter about it by O(1/sqrt(p)), and "
        "their mean differs from it by O(1/p). It holds if the difference is below "
        f"{MAX_STANDARD_ERRORS:g} standard errors at all times.",
    )


def _norm_grows(theory: Any, runs: Any) -> Claim:
    lam, last = np.asarray(theory.lam, float), np.asarray(runs.lam, float)[:, -1]
    std = last.std(ddof=1)
    error = std / len(last) ** 0.5
    limit = OMEGA + 1
    gap, ode_gap = last.mean() - limit, lam[-1] - limit
    increases = bool(np.all(np.diff(lam) > -1e-6))
    converges = abs(ode_gap) < MAX_DISTANCE and abs(gap) < MAX_STANDARD_ERRORS * error
    return Claim(
        "fig:cos_lambda",
        "lambda_t increases as the learning proceeds and converges to omega + 1",
        float(last.mean()),
        float(error),
        f"the norm of the ODE {'never decreases' if increases else 'decreases at times'}, "
        f"and is {ode_gap:+.1e} from omega + 1 at t = {T_MAX:g}; the trials' mean there is "
        f"{last.mean():.4f} +- {error:.4f}, with a standard deviation of {std:.3f} over "
        "trials",
        verdict(increases and bool(converges)),
        "holds",
        "For this start, q0 = 0.1 and lam0 = 1, and in the mean: at finite p the norm of a "
        "single trial keeps fluctuating by O(1/sqrt(p)).",
    )
