"""What the paper says about the best gain and its default rate, checked."""

import numpy as np

from ..claim import Claim, verdict
from ..learning_curves import TAU, Arrays
from .compute import (
    BEST_RATE,
    BEST_RATE_AND_NORM,
    BEST_SCHEDULE,
    CASES,
    CONSTANT_RATES,
    HORIZONS,
    KNOTS,
    T_END,
    oracle_gain,
)

# A rate balances speed and accuracy at a horizon if its overlap there is less than this
# share below that of the best constant rate.
_SMALL_LOSS = 0.05
# The error of an ODE solved in single precision, and the number of standard errors from
# which on a difference is significant.
_ROUNDING, _SIGNIFICANT = 1e-4, 4.0


def claims(arrays: Arrays) -> list[Claim]:
    """Returns the claims about the figure."""
    return [
        _oracle_is_the_best(arrays),
        _optimal_gain(arrays),
        _fixed_rates_are_worse(arrays),
        _default_rate(arrays),
        _finite_p(arrays),
    ]


def _oracle_is_the_best(arrays: Arrays) -> Claim:
    excess = [np.max(arrays[f"{name}/theory/q"] - arrays["oracle"]) for name in CASES]
    excess.append(np.max(arrays["constants/q"] - arrays["oracle/horizons"]))
    gap, bound = (float(arrays[f"{BEST_SCHEDULE}/{x}"]) for x in ("gap", "bound"))
    return Claim(
        source="Remark after eq:optimal_nu_t",
        statement="the adaptive rule characterizes the best achievable dynamics within "
        "this class",
        number=gap,
        error=_ROUNDING,
        evidence=f"a schedule of {KNOTS} knots, tuned for t = {T_END:g}, comes within "
        f"{gap:.1e} of the oracle's overlap there, {bound:.5f}; none of "
        f"{len(CASES) + len(CONSTANT_RATES)} schedules exceeds the oracle at any time by "
        f"more than {max(excess):.1e}",
        verdict=verdict(bool(-1e-9 <= gap < _ROUNDING and max(excess) < _ROUNDING)),
        recorded="holds",
        explanation="The oracle raises q fastest at every moment, and a larger q is never "
        "a disadvantage later: it is the best at every horizon.",
    )


def _optimal_gain(arrays: Arrays) -> Claim:
    difference = np.abs(arrays[f"{BEST_SCHEDULE}/gain"] / oracle_gain(arrays["oracle"]) - 1)
    median = np.median(difference)
    return Claim(
        source="eq:optimal_nu_t",
        statement="the optimal gain is nu = omega (1 - Q^2)/(omega Q^2 + 1)",
        number=float(median),
        error=0.02,
        evidence="the gain of the tuned schedule, which is found without the formula, "
        f"differs from it by {median:.2%} in the median over time and by "
        f"{difference.max():.1%} at most",
        verdict=verdict(bool(median < 0.02)),
        recorded="holds",
        explanation="The schedule is found by the gradient of the overlap at t = 20 alone. "
        "It is linear between its knots, which the formula is not.",
    )


def _fixed_rates_are_worse(arrays: Arrays) -> Claim:
    gaps = [float(arrays[f"{name}/gap"]) for name in (BEST_RATE, BEST_RATE_AND_NORM)]
    tau, lam0 = float(arrays[f"{BEST_RATE}/gain"][0]), float(arrays["lam0"])
    tau_with_norm = float(arrays[f"{BEST_RATE_AND_NORM}/gain"][0]) * lam0
    return Claim(
        source="fig:tau",
        statement="the method with the adaptive learning rate outperforms the fixed "
        "learning rates",
        number=gaps[0],
        error=0.0,
        evidence=f"at t = {T_END:g} the overlap of the best fixed rate, tau = {tau:.3f}, "
        f"is {gaps[0]:.4f} below the oracle's; that of the best rate and initial norm, "
        f"tau = {tau_with_norm:.3f} and lam0 = {lam0:.3f}, is {gaps[1]:.4f} below it",
        verdict=verdict(min(gaps) > _ROUNDING),
        recorded="holds",
        explanation="No fixed rate does as well. From a small lam0 the norm grows, so the "
        "gain of INO-PCA falls even at a fixed rate; this closes a third of the gap.",
    )


def _default_rate(arrays: Arrays) -> Claim:
    q, taus = arrays["constants/q"], arrays["constants/tau"]
    at_default = np.array([np.interp(TAU, taus, column) for column in q.T])
    loss = 1 - at_default / q.max(axis=0)
    balanced = HORIZONS[loss < _SMALL_LOSS]
    losses = ", ".join(
        f"{loss[i]:.1%} at t = {HORIZONS[i]:g} (best: {taus[np.argmax(q[:, i])]:.2g})"
        for i in (1, 3, 5, 8, 10)
    )
    span = f"{balanced.min():g} to {balanced.max():g}" if balanced.size else "none"
    return Claim(
        source="Default parameters",
        statement="the step size is set to tau = 0.5, balancing stability and convergence "
        "speed",
        number=float(loss[5]),
        error=_SMALL_LOSS,
        evidence="compared with the best constant rate for each horizon, tau = 0.5 loses "
        f"this share of the overlap: {losses}; less than {_SMALL_LOSS:.0%} for horizons of "
        f"{span}",
        verdict=verdict(
            bool(np.all(loss < _SMALL_LOSS)),
            "holds with a condition" if balanced.size else "does not hold",
        ),
        recorded="holds with a condition",
        explanation="For horizons of about t = 10 to 20, from q0 = 0.1 and lam0 = 1 at "
        "omega = 1. For shorter horizons it is too slow, and for longer ones its steady "
        "overlap is too low.",
    )


def _finite_p(arrays: Arrays) -> Claim:
    last = arrays[f"{BEST_SCHEDULE}/runs/q"][:, -1].astype(float)
    difference = last.mean() - float(arrays[f"{BEST_SCHEDULE}/theory/q"][-1])
    error = last.std(ddof=1) / len(last) ** 0.5
    return Claim(
        source="beyond the paper",
        statement="a schedule that is tuned in the limit of large p is as good at p = "
        "10,000",
        number=float(difference),
        error=float(error),
        evidence=f"the overlap of the tuned schedule at t = {T_END:g} is {last.mean():.4f} "
        f"+- {error:.4f} over {len(last)} trials, which differs from theory by "
        f"{difference:+.4f}",
        verdict=verdict(bool(abs(difference) < _SIGNIFICANT * error + 1e-3)),
        recorded="holds",
        explanation="Within four standard errors, plus 0.001 for the shift of the mean at "
        "this p.",
    )
