"""What Theorem 1 and its derivation say about large p, checked."""

import numpy as np

from ..claim import Arrays, Claims, Finding
from ..statistics import SIGNIFICANT, Mean
from .compute import (
    MIRRORED_P,
    Q0,
    SMALLEST_P_FOR_SLOPES,
    TIME,
    distance_from_ode,
    fitted_slope,
)

# A slope may differ from its limit by what the next order in 1/p, 10 % at p = 200, does to
# it.
_NEXT_ORDER = 0.08

claims = Claims()


def _slope_is(slope: Mean, limit: float) -> bool:
    return abs(slope.value - limit) < _NEXT_ORDER + SIGNIFICANT * slope.error


@claims.add("theo:main_conv, O(1/p) in sec:exchangebility_and_derivation")
def mean_converges(arrays: Arrays) -> Finding:
    """As p grows the process converges to the solution of the PDE, whose moments are the
    ODEs, with terms of O(1/p) left out.

    The mean differs by the predicted multiple of 1/p, which comes from the curvature of the
    ODE and from the finite length of a step. Below p = 200 the next order is visible.
    """
    p, distance, predicted = distance_from_ode(arrays)
    slope, ratio = fitted_slope(p, distance), distance / predicted
    return Finding(
        slope.value,
        slope.error,
        f"from q0 = {Q0:g}, the mean of q at t = {TIME:g} differs from the ODE by "
        f"{distance.value[0]:.4f} at p = {p[0]:g} and by {distance[-1]:.5f} at p = "
        f"{p[-1]:g}. From p = {SMALLEST_P_FOR_SLOPES} on this falls as p to the power "
        f"{slope:.2f}; at the largest p it is {ratio[-1]:.2f} times the predicted shift",
        _slope_is(slope, -1),
    )


def _fluctuations_vanish(arrays: Arrays, quantity: str) -> Finding:
    """The martingale fluctuations vanish as p grows: the limit is deterministic
    ({quantity}).

    It falls as 1/sqrt(p), with the constant that the covariance of a step predicts.
    """
    p, std = arrays["p"], Mean(arrays[f"{quantity}_std"], arrays[f"{quantity}_std_error"])
    slope, ratio = fitted_slope(p, std), std / arrays[f"theory/{quantity}_std"]
    return Finding(
        slope.value,
        slope.error,
        f"the standard deviation of {quantity} at t = {TIME:g} falls from "
        f"{std.value[0]:.3f} at p = {p[0]:g} to {std.value[-1]:.2g} at p = {p[-1]:g}, as p "
        f"to the power {slope:.3f}; at the largest p it is {ratio[-1]:.3f} times the "
        "predicted one",
        _slope_is(slope, -0.5),
    )


for _quantity in ("q", "lam"):
    _martingale = "theo:main_conv, M_t in sec:exchangebility_and_derivation"
    claims.add(_martingale, quantity=_quantity)(_fluctuations_vanish)


@claims.add("theo:main_conv")
def either_sign(arrays: Arrays) -> Finding:
    """It is enough that the initial cosine similarity is nonzero, Q_0 != 0.

    x and -x are the same estimate. A run keeps the sign with which it begins, and a
    positive sign is a convention.
    """
    at = int(np.argmin(np.abs(arrays["p"] - MIRRORED_P)))
    positive = Mean(arrays["q"][at], arrays["q_error"][at])
    negative = Mean(arrays["mirrored/q"], arrays["mirrored/q_error"])
    total = positive - Mean(-negative.value, negative.error)
    return Finding(
        total.value,
        total.error,
        f"at p = {MIRRORED_P} the mean of q at t = {TIME:g} is {negative.value:.4f} from "
        f"q0 = -{Q0:g} and {positive.value:.4f} from q0 = {Q0:g}: their sum is "
        f"{total.value:+.4f} +- {total.error:.4f}",
        not total.is_significant and negative.value < -Q0,
    )
