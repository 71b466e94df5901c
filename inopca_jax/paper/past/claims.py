"""INO-PCA against algorithms of subspace tracking."""

import numpy as np

from ..claim import Arrays, Claims, Finding
from ..statistics import SIGNIFICANT, mean_of
from .compute import PAST, PETRELS, P, gaps, power

# How far a power may be from its limit at rates that are not infinitely small, overlaps at
# rest from each other by the accuracy of the solver, and a mean distance from the ODE at p.
_NEXT_ORDER, _SOLVED, _FINITE_P = 0.1, 1e-4, 0.02

claims = Claims()


@claims.add("beyond the paper")
def second_order(arrays: Arrays) -> Finding:
    """INO-PCA is PAST, recursive least squares with forgetting, up to second order in the
    gain.

    With the forgetting factor 1 - tau/p, the velocity of the logarithm of the gain nu is
    tau - nu s2 in both, where s2 = omega q^2 + 1, up to terms in nu^2. Over the time 1/tau
    that learning takes, these add up to a distance of the paths in proportion to tau.
    """
    taus, (largest, _) = arrays["taus"], gaps(arrays, PAST)
    slope = power(taus, largest)
    return Finding(
        slope,
        _NEXT_ORDER,
        f"the paths of the overlaps differ by at most {largest[0]:.4f} at tau = "
        f"{taus[0]:.2g} and {largest[-1]:.5f} at tau = {taus[-1]:.2g}; at the smallest "
        f"rates this falls as tau to the power {slope:.3f}",
        abs(slope - 1) < _NEXT_ORDER,
    )


@claims.add("beyond the paper")
def same_at_rest(arrays: Arrays) -> Finding:
    """At rest INO-PCA and PAST have the same overlap at every rate.

    PAST's norm settles at sqrt(1 + nu/2), which completes its gain to that of INO-PCA,
    nu = tau/(omega + 1). PETRELS takes the coefficients of the exact projection, and its
    gain differs in second order.
    """
    (_, past), (_, petrels) = (gaps(arrays, name) for name in (PAST, PETRELS))
    taus = arrays["taus"]
    slope = power(taus, petrels)
    return Finding(
        past.max(),
        _SOLVED,
        f"the overlaps of PAST and INO-PCA at rest differ by at most {past.max():.1g}, "
        f"those of PETRELS and INO-PCA by {petrels[0]:.4f} at tau = {taus[0]:.2g}, which "
        f"falls as tau to the power {slope:.2f}",
        past.max() < _SOLVED and abs(slope - 2) < _NEXT_ORDER,
    )


@claims.add("beyond the paper")
def matrix_equations(arrays: Arrays) -> Finding:
    """The exact chain of two components follows the matrix ODE of an algorithm that acts on
    all components at once, PAST.

    It holds if the mean Grassmann distance of the trials is nowhere further from the ODE
    than 0.02, up to its error.
    """
    # Without the first time, at which the start alone matters.
    measured = mean_of(arrays[f"{PAST}/runs/distance"][:, 1:])
    gaps_by_time = measured - arrays[f"{PAST}/theory/distance"][1:]
    at = int(np.argmax(np.abs(gaps_by_time.value)))
    gap, start = gaps_by_time[at], arrays[f"{PAST}/theory/distance"][0]
    return Finding(
        gap.value,
        gap.error,
        f"at p = {P:,} the mean distance, which falls from {start:.2f} to "
        f"{measured.value[-1]:.3f}, differs from the ODE by at most {abs(gap.value):.4f} "
        f"+- {gap.error:.4f}, at t = {arrays['ts'][1 + at]:g}",
        abs(gap.value) < _FINITE_P + SIGNIFICANT * gap.error,
    )
