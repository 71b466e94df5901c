"""What Theorem 1 and its derivation say about large p, checked."""

import numpy as np

from ..claim import Claim, verdict
from ..figure import Arrays
from .compute import (
    MIRRORED_P,
    Q0,
    SMALLEST_P_FOR_SLOPES,
    TIME,
    distance_from_ode,
    fitted_slope,
)

# The number of standard errors from which on a difference is significant. Besides, a slope
# may differ from its limit by what the next order in 1/p, 10 % at p = 200, does to it.
_SIGNIFICANT, _NEXT_ORDER = 4.0, 0.08


def claims(arrays: Arrays) -> list[Claim]:
    """Returns the claims about the figure."""
    return [
        _mean_converges(arrays),
        _fluctuations_vanish(arrays, "q"),
        _fluctuations_vanish(arrays, "lam"),
        _either_sign(arrays),
    ]


def _mean_converges(arrays: Arrays) -> Claim:
    p, distance, error = distance_from_ode(arrays)
    slope, slope_error = fitted_slope(p, distance, error)
    unit = p / abs(arrays["theory/q_shift"])
    ratio, ratio_error = distance * unit, error * unit
    return Claim(
        source="Theorem 1, O(1/p) in Section 5",
        statement="as p grows the process converges to the solution of the PDE, whose "
        "moments are the ODEs, with terms of O(1/p) left out",
        number=slope,
        error=slope_error,
        evidence=f"from q0 = {Q0:g}, the mean of q at t = {TIME:g} differs from the ODE "
        f"by {distance[0]:.4f} at p = {p[0]:g} and by {distance[-1]:.5f} +- "
        f"{error[-1]:.5f} at p = {p[-1]:g}. From p = {SMALLEST_P_FOR_SLOPES} on this "
        f"falls as p to the power {slope:.2f} +- {slope_error:.2f}; at the largest p it "
        f"is {ratio[-1]:.2f} +- {ratio_error[-1]:.2f} times the predicted shift",
        verdict=verdict(bool(abs(slope + 1) < _NEXT_ORDER + _SIGNIFICANT * slope_error)),
        recorded="holds",
        explanation="The mean differs by the predicted multiple of 1/p, which comes from "
        "the curvature of the ODE and from the finite length of a step. Below p = 200 the "
        "next order is visible.",
    )


def _fluctuations_vanish(arrays: Arrays, quantity: str) -> Claim:
    p, std = arrays["p"], arrays[f"{quantity}_std"]
    error = arrays[f"{quantity}_std_error"]
    slope, slope_error = fitted_slope(p, std, error)
    unit = np.sqrt(p) / arrays[f"theory/{quantity}_std"]
    return Claim(
        source="Theorem 1, M_t in Section 5",
        statement="the martingale fluctuations vanish as p grows: the limit is "
        f"deterministic ({quantity})",
        number=slope,
        error=slope_error,
        evidence=f"the standard deviation of {quantity} at t = {TIME:g} falls from "
        f"{std[0]:.3f} at p = {p[0]:g} to {std[-1]:.2g} at p = {p[-1]:g}, as p to the "
        f"power {slope:.3f} +- {slope_error:.3f}; at the largest p it is "
        f"{std[-1] * unit[-1]:.3f} +- {error[-1] * unit[-1]:.3f} times the predicted one",
        verdict=verdict(bool(abs(slope + 0.5) < _NEXT_ORDER + _SIGNIFICANT * slope_error)),
        recorded="holds",
        explanation="It falls as 1/sqrt(p), with the constant that the covariance of a "
        "step predicts.",
    )


def _either_sign(arrays: Arrays) -> Claim:
    at = int(np.argmin(np.abs(arrays["p"] - MIRRORED_P)))
    positive, negative = float(arrays["q"][at]), float(arrays["mirrored/q"])
    error = float(np.hypot(arrays["q_error"][at], arrays["mirrored/q_error"]))
    total = positive + negative
    return Claim(
        source="Theorem 1",
        statement="it is enough that the initial cosine similarity is nonzero, Q_0 != 0",
        number=total,
        error=error,
        evidence=f"at p = {MIRRORED_P} the mean of q at t = {TIME:g} is {negative:.4f} "
        f"from q0 = -{Q0:g} and {positive:.4f} from q0 = {Q0:g}: their sum is "
        f"{total:+.4f} +- {error:.4f}",
        verdict=verdict(bool(abs(total) < _SIGNIFICANT * error and negative < -Q0)),
        recorded="holds",
        explanation="x and -x are the same estimate. A run keeps the sign with which it "
        "begins, and a positive sign is a convention.",
    )
