"""What the paper says about learning rates and about eq:optimal_nu_t."""

import numpy as np

from ..claim import Arrays, Claims, Finding
from ..learning_curves import TRIALS
from ..statistics import SIGNIFICANT, listed, mean_of
from .compute import ADAPTIVE, ALL_TAUS, GAINS, LARGE_TAUS, OMEGAS, T_MAX, TAUS, name_of

# The tolerance of the numerical solution of the ODEs.
ODE_TOLERANCE = 2e-5

claims = Claims()


@claims.add("fig:tau")
def outperforms(arrays: Arrays) -> Finding:
    """Adaptive INO-PCA outperforms the fixed learning rates.

    In trials on the same samples. In the first units of time all overlaps are at the level
    of the noise, 1/sqrt(p).
    """
    adaptive = arrays[f"{ADAPTIVE}/runs/q"]
    leads = np.array([adaptive - arrays[f"{name_of(tau)}/runs/q"] for tau in TAUS])
    averages = mean_of(leads.mean(axis=2), axis=1)
    least, significance = int(np.argmin(averages.value)), min(averages.standard_errors)
    # Without the first time, at which all are at the same estimate.
    by_time = mean_of(leads[:, :, 1:], axis=1).standard_errors
    behind = max(0.0, -np.min(by_time))
    return Finding(
        averages.value[least],
        averages.error[least],
        f"averaged over t <= {T_MAX:g}, |q| of {TRIALS} trials exceeds that of every fixed "
        f"rate (tau = {listed(TAUS)}), by at least {averages[least]:.3f} (tau = "
        f"{TAUS[least]:g}) and at least {significance:.0f} standard errors; at no time is "
        f"a fixed rate ahead by more than {behind:.1f} standard errors",
        significance > SIGNIFICANT and behind < SIGNIFICANT,
    )


@claims.add("eq:optimal_nu_t")
def best_in_the_limit(arrays: Arrays) -> Finding:
    """The adaptive rate has the best achievable dynamics (in the limit, from q0 = 0.1).

    dq/dt depends on the gain and on q alone, so the gain that is fastest at each q is ahead
    at each time (by comparison of scalar ODEs).
    """
    best = arrays["limit/best"]
    excess = np.max(arrays["limit/fixed"] - best)
    gap = np.max(np.abs(arrays["limit/adaptive"] - best))
    return Finding(
        excess,
        ODE_TOLERANCE,
        f"over {len(ALL_TAUS)} rates from {ALL_TAUS[0]:g} to {ALL_TAUS[-1]:g} and all "
        f"times, the overlap exceeds that of the adaptive rate by at most {excess:.0e}; "
        f"the adaptive path is within {gap:.0e} of its closed form, and ends at "
        f"{best[-1]:.4f}, the best fixed rate at {arrays['limit/fixed'][:, -1].max():.4f}",
        excess < ODE_TOLERANCE and gap < ODE_TOLERANCE,
    )


@claims.add("eq:optimal_nu_t, rem:our_oracle", "holds with a condition")
def best_from_a_cold_start(arrays: Arrays) -> Finding:
    """The adaptive rate characterises the best achievable dynamics (from a cold start).

    If q0 is not 0 and p is large. At finite p and q near 0, noise raises |q| as well, and
    more so at a larger gain, which eq:max_nu_t does not take into account.
    """
    adaptive, ts = arrays[f"{ADAPTIVE}/theory/q"], arrays[f"{ADAPTIVE}/theory/ts"]
    lead = np.stack([arrays[f"large/{tau}"] - adaptive for tau in LARGE_TAUS])
    row, at = np.unravel_index(np.argmax(lead), lead.shape)
    until = ts[np.any(lead > 1e-4, axis=0)].max(initial=0)
    behind, largest = -lead.mean(axis=1).max(), lead.max()
    return Finding(
        largest,
        1e-3,
        f"until t = {until:g} the mean of |q| is larger for a large fixed rate, by at most "
        f"{largest:.3f} (tau = {LARGE_TAUS[row]:g} at t = {ts[at]:g}); averaged over t <= "
        f"{T_MAX:g} each of these rates is behind by {behind:.2f} or more",
        largest < 1e-3,
        behind > 0.05,
    )


@claims.add("eq:optimal_nu_t")
def solves_the_maximisation(arrays: Arrays) -> Finding:
    """It is the solution of eq:max_nu_t.

    dq/dt is a parabola in the gain. The error is the spacing of the gains in the search.
    """
    searched = arrays["gain/searched"]
    gap, spacing = np.max(np.abs(searched - arrays["gain/adaptive"])), GAINS[1] - GAINS[0]
    return Finding(
        gap,
        spacing,
        f"a search among {len(GAINS)} gains, at {searched.shape[1]} overlaps and omega = "
        f"{listed(OMEGAS)}, finds the same gain within {gap:.1e}",
        gap <= spacing,
    )
