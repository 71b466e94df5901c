"""What the paper says about learning rates and about eq:optimal_nu_t."""

from typing import Any

import numpy as np

from ..claim import Claim, verdict
from ..figure import Arrays
from ..learning_curves import TRIALS
from .compute import (
    ADAPTIVE,
    ALL_TAUS,
    GAINS,
    LARGE_TAUS,
    OMEGAS,
    OVERLAPS,
    T_MAX,
    TAUS,
    name_of,
)

# The number of standard errors that makes a difference significant, and the tolerance of
# the numerical solution of the ODEs.
SIGNIFICANT, ODE_TOLERANCE = 4.0, 2e-5


def claims(arrays: Arrays) -> list[Claim]:
    """Returns the checked claims."""
    return [
        _outperforms(arrays),
        _best_in_the_limit(arrays),
        _best_from_a_cold_start(arrays),
        _solves_the_maximisation(arrays),
    ]


def _listed(values: Any) -> str:
    return ", ".join(f"{value:g}" for value in values)


def _outperforms(arrays: Arrays) -> Claim:
    adaptive = arrays[f"{ADAPTIVE}/runs/q"]
    leads = [adaptive - arrays[f"{name_of(tau)}/runs/q"] for tau in TAUS]
    averages = [lead.mean(axis=1) for lead in leads]
    gaps, errors = (np.array(x) for x in zip(*map(_mean_and_error, averages), strict=True))
    least, significance = int(np.argmin(gaps)), float(min(gaps / errors))
    # Without the first time, at which all are at the same estimate.
    means, mean_errors = zip(*(_mean_and_error(lead[:, 1:]) for lead in leads), strict=True)
    behind = max(0.0, float(-np.min(np.divide(means, mean_errors))))
    return Claim(
        "fig:tau",
        "adaptive INO-PCA outperforms the fixed learning rates",
        float(gaps[least]),
        float(errors[least]),
        f"averaged over t <= {T_MAX:g}, |q| exceeds that of every fixed rate, by at least "
        f"{gaps[least]:.3f} +- {errors[least]:.3f} (tau = {TAUS[least]:g}) and at least "
        f"{significance:.0f} standard errors; at no time is a fixed rate ahead by more "
        f"than {behind:.1f} standard errors",
        verdict(bool(significance > SIGNIFICANT and behind < SIGNIFICANT)),
        "holds",
        f"For tau = {_listed(TAUS)}, in {TRIALS} trials on the same samples. In the first "
        "units of time all overlaps are at the level of the noise, 1/sqrt(p).",
    )


def _mean_and_error(values: np.ndarray) -> tuple[Any, Any]:
    """Returns the mean over trials and its standard error."""
    return values.mean(axis=0), values.std(axis=0, ddof=1) / len(values) ** 0.5


def _best_in_the_limit(arrays: Arrays) -> Claim:
    best = arrays["limit/best"]
    excess = float(np.max(arrays["limit/fixed"] - best[None, :]))
    gap = float(np.max(np.abs(arrays["limit/adaptive"] - best)))
    best_fixed = arrays["limit/fixed"][:, -1].max()
    return Claim(
        "eq:optimal_nu_t",
        "the adaptive rate has the best achievable dynamics (in the limit, from q0 = 0.1)",
        excess,
        ODE_TOLERANCE,
        f"over {len(ALL_TAUS)} rates from {ALL_TAUS[0]:g} to {ALL_TAUS[-1]:g} and all "
        f"times, the overlap exceeds that of the adaptive rate by at most {excess:.0e}; "
        f"the adaptive path is within {gap:.0e} of its closed form, and ends at "
        f"{best[-1]:.4f}, the best fixed rate at {best_fixed:.4f}",
        verdict(bool(excess < ODE_TOLERANCE and gap < ODE_TOLERANCE)),
        "holds",
        "dq/dt depends on the gain and on q alone, so the gain that is fastest at each q "
        "is ahead at each time (by comparison of scalar ODEs).",
    )


def _best_from_a_cold_start(arrays: Arrays) -> Claim:
    adaptive, ts = arrays[f"{ADAPTIVE}/theory/q"], arrays[f"{ADAPTIVE}/theory/ts"]
    lead = np.stack([arrays[f"large/{tau}"] - adaptive for tau in LARGE_TAUS])
    row, at = np.unravel_index(np.argmax(lead), lead.shape)
    ahead = np.flatnonzero(np.any(lead > 1e-4, axis=0))
    until = ts[ahead[-1]] if ahead.size else 0
    behind = float(-lead.mean(axis=1).max())
    largest = float(lead.max())
    otherwise = "holds with a condition" if behind > 0.05 else "does not hold"
    return Claim(
        "eq:optimal_nu_t, remark",
        "the adaptive rate characterises the best achievable dynamics (from a cold start)",
        largest,
        1e-3,
        f"until t = {until:g} the mean of |q| is larger for a large fixed rate, by at most "
        f"{largest:.3f} (tau = {LARGE_TAUS[row]:g} at t = {ts[at]:g}); averaged over t <= "
        f"{T_MAX:g} each of these rates is behind by {behind:.2f} or more",
        verdict(bool(largest < 1e-3), otherwise=otherwise),
        "holds with a condition",
        "If q0 is not 0 and p is large. At finite p and q near 0, noise raises |q| as "
        "well, and more so at a larger gain, which eq:max_nu_t does not take into account.",
    )


def _solves_the_maximisation(arrays: Arrays) -> Claim:
    gap = float(np.max(np.abs(arrays["gain/searched"] - arrays["gain/adaptive"])))
    spacing = float(GAINS[1] - GAINS[0])
    return Claim(
        "eq:optimal_nu_t",
        "it is the solution of eq:max_nu_t",
        gap,
        spacing,
        f"a search among {len(GAINS)} gains, at {len(OVERLAPS)} overlaps and omega = "
        f"{_listed(OMEGAS)}, finds the same gain within {gap:.1e}",
        verdict(bool(gap <= spacing)),
        "holds",
        "dq/dt is a parabola in the gain, and the spacing of the gains in the search is "
        f"{spacing:g}.",
    )
