"""What the paper says about the initial norm."""

import numpy as np

from ..claim import Arrays, Claims, Finding
from ..learning_curves import OMEGA, TAU, UNLEARNED_NORM
from ..statistics import SIGNIFICANT, listed, mean_of
from .compute import (
    FINE_LAM0S,
    LAM0S,
    LONG_TS,
    MANY_LAM0S,
    PORTRAIT_LAM0S,
    PORTRAIT_Q0,
    T_MAX,
    WARM_Q0,
    name_of,
)

# The paths from many norms, by their initial overlap.
PATHS = ("cold", "warm")
# The distance of a norm from the closed form that the grid of the search explains.
GRID_TOLERANCE = float(2 * (FINE_LAM0S[1] - FINE_LAM0S[0]))
_FROM_MANY_NORMS = (
    f"from {len(MANY_LAM0S)} norms in [{MANY_LAM0S[0]:g}, {MANY_LAM0S[-1]:g}]"
)

claims = Claims()


@claims.add("fig:lambda0")
def steady_state_is_independent(arrays: Arrays) -> Finding:
    """The steady-state cosine similarity is independent of the initial norm.

    There is one stable fixed point with q > 0, and all of these paths end there.
    """
    steady, tolerance = arrays["fixed/points"][1, 0], 1e-3
    gap = max(np.max(np.abs(arrays[f"{path}/q"][:, -1] - steady)) for path in PATHS)
    differences = [
        mean_of(arrays[f"{name}/runs/q"][:, -1]) - arrays[f"{name}/theory/q"][-1]
        for name in map(name_of, LAM0S)
    ]
    largest = max(abs(difference.standard_errors) for difference in differences)
    return Finding(
        gap,
        tolerance,
        f"{_FROM_MANY_NORMS}, q0 = 0.01 and 0.1, the overlap of the ODE at t = "
        f"{LONG_TS[-1]:g} is within {gap:.0e} of Q_s = {steady:.5f}; the trials' means at "
        f"t = {T_MAX:g} are within {largest:.1f} standard errors of their ODEs",
        gap < tolerance and largest < SIGNIFICANT,
    )


@claims.add("fig:lambda0")
def paths_merge(arrays: Arrays) -> Finding:
    """Trajectories are attracted to the one from (1 + sqrt(1 + 2 tau))/2 and merge.

    The norm relaxes at the rate tau or faster, while near q = 0 the overlap grows slowly.
    From a larger q0 there is less time to merge.
    """
    # The norms of paths where they pass the same overlaps.
    levels, tolerance = np.array([0.1, 0.3, 0.5, 0.7]), 1e-2
    norms = [_norms_at(levels, arrays, "cold", i) for i in range(len(MANY_LAM0S))]
    gaps = np.abs(np.stack(norms) - _norms_at(levels, arrays, "portrait", 0))
    furthest = np.max(gaps, axis=0)
    initial = np.max(np.abs(MANY_LAM0S - UNLEARNED_NORM))
    low, high = min(PORTRAIT_LAM0S), max(PORTRAIT_LAM0S)
    furthest_drawn = np.max(gaps[(low <= MANY_LAM0S) & (high >= MANY_LAM0S)], axis=0)
    return Finding(
        furthest[-1],
        tolerance,
        f"where paths from q0 = 0.01 pass q = {listed(levels)}, their norms differ from "
        f"that of the red path by at most {listed(furthest_drawn, '.0e')} (lam0 from "
        f"{low:g} to {high:g}), and {listed(furthest, '.0e')} (lam0 from "
        f"{MANY_LAM0S[0]:g} to {MANY_LAM0S[-1]:g}, where they differ by up to "
        f"{initial:.0f} at the start)",
        np.all(np.diff(furthest) < 0) and furthest[-1] < tolerance,
    )


def _norms_at(levels: np.ndarray, arrays: Arrays, paths: str, i: int) -> np.ndarray:
    """Returns the norms of a path where its overlap, after its minimum, passes levels."""
    q, lam = arrays[f"{paths}/q"][i], arrays[f"{paths}/lam"][i]
    rising = slice(int(np.argmin(q)), None)
    return np.interp(levels, q[rising], lam[rising])


@claims.add("sec:our_initial_norm", "holds with a condition")
def fastest_norm(arrays: Arrays) -> Finding:
    """The initial norm of the fastest initial increase is tau/omega = 0.5.

    For the velocity at t = 0 and q0 near 0. The norm grows at once, and the gain falls
    below its best value, so a smaller norm gives a larger overlap later.
    """
    q0s = (PORTRAIT_Q0, WARM_Q0)
    small, warm = (float(arrays[f"fastest/{q0}"]) for q0 in q0s)
    closed_forms = [float(arrays[f"closed form/{q0}"]) for q0 in q0s]
    times, papers_norm = (1.0, 5.0, 10.0), TAU / OMEGA
    overlaps = arrays["warm/q"][:, np.searchsorted(LONG_TS, np.array(times) - 1e-9)]
    best = MANY_LAM0S[np.argmax(overlaps, axis=0)]
    loss = [q.max() - np.interp(papers_norm, MANY_LAM0S, q) for q in overlaps.T]
    initially = np.allclose([small, warm], closed_forms, rtol=0, atol=GRID_TOLERANCE)
    small_q0 = abs(small - papers_norm) < GRID_TOLERANCE
    later = np.max(np.abs(np.log(best / papers_norm))) < np.log(1.1)
    return Finding(
        small,
        GRID_TOLERANCE,
        f"the overlap initially rises fastest from lam0 = {small:.3f} (q0 = 0.01) and "
        f"{warm:.3f} (q0 = 0.1, where eq:optimal_nu_t gives {closed_forms[1]:.3f}); at t = "
        f"{listed(times)} the overlap is largest from lam0 = {listed(best, '.2f')}, and "
        f"smaller by only {listed(loss, '.3f')} from 0.5",
        initially and small_q0 and later,
        initially and small_q0,
    )


@claims.add("sec:our_initial_norm")
def temporary_drop(arrays: Arrays) -> Finding:
    """A poorly chosen initial norm can lead to a temporary drop in cosine similarity.

    Below half of the best norm the gain tau/lam0 is more than twice its best value. Too
    large a norm costs time, but no overlap.
    """
    name, largest_norm = name_of(LAM0S[0]), float(arrays[f"falls/{WARM_Q0}"])
    half_best = float(arrays[f"closed form/{WARM_Q0}"]) / 2
    at, runs = int(np.argmin(arrays[f"{name}/theory/q"])), arrays[f"{name}/runs/q"]
    drop = mean_of(runs[:, 0] - runs[:, at])
    return Finding(
        drop.value,
        drop.error,
        f"from lam0 = {LAM0S[0]:g} and q0 = 0.1 the overlap falls by {drop:.3f} until t = "
        f"{arrays[f'{name}/theory/ts'][at]:g}; in the ODE it falls from every lam0 up to "
        f"{largest_norm:.3f} (half of the best norm: {half_best:.3f}), and to "
        f"{arrays['warm/q'][0].min():.3f} from lam0 = {MANY_LAM0S[0]:g}",
        drop.value > SIGNIFICANT * drop.error
        and abs(largest_norm - half_best) < GRID_TOLERANCE,
    )


@claims.add("eq:dynamics_update", "holds with a condition")
def monotone_norm(arrays: Arrays) -> Finding:
    """If lambda_0 is less than the leading eigenvalue, lambda_k increases monotonically.

    If q0 is near 0 and lam0 is below (1 + sqrt(1 + 2 tau))/2 = 1.2071, the norm at rest
    before anything is learnt.
    """
    below = MANY_LAM0S < OMEGA + 1
    lam0s, lam = MANY_LAM0S[below], arrays["cold/lam"][below]
    decreases = lam.min(axis=1) < lam[:, 0] - 1e-4
    lam0 = 1.8
    lowest = arrays["portrait/lam"][1 + PORTRAIT_LAM0S.index(lam0)].min()
    lowest_of_trials = arrays[f"{name_of(lam0)}/runs/lam"].mean(axis=0).min()
    return Finding(
        lam0 - lowest,
        1e-4,
        f"from lam0 = 1.8 and q0 = 0.01 the norm first decreases to {lowest:.3f} (for the "
        f"trials, from q0 = 0.1, to {lowest_of_trials:.3f}); it decreases from "
        f"{decreases.sum()} of {below.sum()} norms below omega + 1, and from none up to "
        f"{lam0s[~decreases].max(initial=0):.3f}",
        not decreases.any(),
        np.all(decreases == (lam0s > UNLEARNED_NORM)),
    )


@claims.add("appendix:bounded_lambda_k")
def bounded_norm(arrays: Arrays) -> Finding:
    """lambda_k remains bounded whatever the initial norm.

    By the ODE. The appendix argues with omega + 1 as the mean of the top eigenvalue of
    y y^T; that eigenvalue is |y|^2, with mean p + omega.
    """
    lam, tolerance = np.stack([arrays[f"{path}/lam"] for path in PATHS]), 1e-4
    above = np.max(lam.max(axis=2) / np.maximum(MANY_LAM0S, OMEGA + 1)) - 1
    below = 1 - np.min(lam.min(axis=2) / np.minimum(MANY_LAM0S, UNLEARNED_NORM))
    excess = max(above, below)
    return Finding(
        excess,
        tolerance,
        f"{_FROM_MANY_NORMS} the norm of the ODE stays above the smaller of lam0 and "
        "(1 + sqrt(1 + 2 tau))/2 and below the larger of lam0 and omega + 1, up to a "
        f"factor of 1 +- {max(excess, 0):.0e}",
        excess < tolerance,
    )
