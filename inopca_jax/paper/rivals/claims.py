"""What the paper says about its class of updates, its rivals and warm starts, checked."""

import numpy as np

import inopca_jax as ino

from ..claim import Claim, verdict
from ..learning_curves import OMEGA, TAU, TRIALS, Arrays
from .compute import INO, OJA, ORACLE, PUBLISHED, T_MAX, configs

# The error of an ODE solved in single precision, and the number of standard errors from
# which on a difference is significant.
_ROUNDING, _SIGNIFICANT = 1e-4, 4.0
# A time at which the leading order in 1/t is all that matters.
_LATE = 1000.0
_REGULAR = [name for name in configs() if name not in PUBLISHED]


def claims(arrays: Arrays) -> list[Claim]:
    """Returns the claims about the figure."""
    return [
        _none_exceeds_the_oracle(arrays),
        outperforms_others(arrays),
        _others_reduce_influence(arrays),
        _sign_is_kept(arrays),
        _oracle_is_as_good_as_offline_pca(),
    ]


def _overlaps(arrays: Arrays, names: list[str]) -> dict[str, np.ndarray]:
    return {name: arrays[f"{name}/theory/q"].astype(float) for name in names}


def _without_symbols(name: str) -> str:
    return name.replace("$", "").replace("_", "")


def _none_exceeds_the_oracle(arrays: Arrays) -> Claim:
    overlaps = _overlaps(arrays, _REGULAR)
    oracle = overlaps.pop(ORACLE)
    excess = max(float(np.max(q - oracle)) for q in overlaps.values())
    share = {name: float(q[-1] / oracle[-1]) for name, q in overlaps.items()}
    closest = max(share, key=share.__getitem__)
    return Claim(
        source="Remark after eq:optimal_nu_t",
        statement="the oracle characterizes the best achievable dynamics within this class",
        number=excess,
        error=_ROUNDING,
        evidence="in the mean field no algorithm exceeds the oracle's overlap at any time "
        f"by more than {excess:.1e}; the closest at t = {T_MAX:g} is "
        f"{_without_symbols(closest)}, with {share[closest]:.1%} of it",
        verdict=verdict(excess < _ROUNDING),
        recorded="holds",
        explanation="dq/dt depends on the rule only through the gain, and is largest at "
        "the oracle's gain. By comparison of ODEs no path from the same q0 overtakes it.",
    )


def outperforms_others(arrays: Arrays) -> Claim:
    ts = arrays[f"{INO}/theory/ts"]
    overlaps = _overlaps(arrays, [*_REGULAR, *PUBLISHED])
    ours, _ = overlaps.pop(INO), overlaps.pop(ORACLE)
    is_ahead = {name: ours[1:] > q[1:] for name, q in overlaps.items()}
    share = {name: float(np.mean(ahead)) for name, ahead in is_ahead.items()}
    since = _ahead_since(ts[1:], is_ahead[OJA])
    against_oja = (
        "behind Oja's method at the end"
        if since is None
        else f"ahead of Oja's method from t = {since:g} on"
    )
    shares = "; ".join(
        f"{share[name]:.0%}, {_without_symbols(name)} ({q[-1]:.3f})"
        for name, q in overlaps.items()
    )
    always, at_the_end = min(share.values()) == 1, bool(is_ahead[OJA][-1])
    return Claim(
        source="Contributions",
        statement="INO-PCA consistently outperforms classical online PCA algorithms, "
        "achieves both fast initial learning and strong steady-state accuracy",
        number=share[OJA],
        error=0.0,
        evidence=f"from q0 = 0.1 and lam0 = 1 up to t = {T_MAX:g}, where its overlap is "
        f"{ours[-1]:.3f}, INO-PCA is ahead for this share of the times (in brackets the "
        f"other's last overlap): {shares}. It is {against_oja}",
        verdict=verdict(
            always, "holds with a condition" if at_the_end else "does not hold"
        ),
        recorded="holds with a condition",
        explanation="At late times, against Oja's method at the same constant rate. If the "
        "spike does not change, algorithms whose rates fall continue to improve after one "
        "with a constant rate has reached its steady state.",
    )


def _ahead_since(ts: np.ndarray, is_ahead: np.ndarray) -> float | None:
    """The first time from which on `is_ahead` is always true; None if its last is not."""
    behind = np.flatnonzero(~is_ahead)
    first = behind[-1] + 1 if behind.size else 0
    return float(ts[first]) if first < len(ts) else None


def _others_reduce_influence(arrays: Arrays) -> Claim:
    ts = arrays[f"{PUBLISHED[0]}/theory/ts"].astype(float)
    gains = [arrays[f"{name}/gain"].astype(float) for name in PUBLISHED]
    late = ts >= T_MAX / 2
    powers = [
        float(np.polyfit(np.log(ts[late]), np.log(gain[late]), 1)[0]) for gain in gains
    ]
    return Claim(
        source="Adaptive INO-PCA vs. representative baselines",
        statement="AdaOja and CCIPCA progressively reduce the influence of new samples "
        "over time",
        number=max(powers),
        error=0.0,
        evidence=f"from t = {T_MAX / 2:g} to t = {T_MAX:g} their gains fall as t to the "
        f"power {powers[0]:.2f} (AdaOja) and {powers[1]:.2f} (CCIPCA), to "
        f"{gains[0][-1]:.3f} and {gains[1][-1]:.3f}; INO-PCA's tends to tau/(omega + 1) = "
        f"{TAU / (OMEGA + 1):g}",
        verdict=verdict(max(powers) < -0.3),
        recorded="holds",
        explanation="AdaGrad's rate is 1/sqrt of a sum that grows as t; CCIPCA's gain is "
        "c/t over a norm that becomes constant. So the powers tend to -1/2 and -1; they "
        "are more negative while q and lam still grow.",
    )


def _sign_is_kept(arrays: Arrays) -> Claim:
    shares = [float(np.mean(arrays[f"{name}/last"] < 0)) for name in PUBLISHED]
    trials = len(arrays[f"{PUBLISHED[0]}/last"])
    negative = sum(int(np.sum(arrays[f"{x}/runs/q"][:, -1] < 0)) for x in _REGULAR)
    either_sign = min(shares) > 0.5 - _SIGNIFICANT / 2 / trials**0.5
    return Claim(
        source="Initialization",
        statement="any modest positive alignment suffices to break the sign symmetry of "
        "the problem",
        number=min(shares),
        error=0.5 / trials**0.5,
        evidence=f"from q0 = 0.1 at p = 10,000, shares of {shares[0]:.2f} (AdaOja) and "
        f"{shares[1]:.2f} (CCIPCA) of {trials} trials of the published algorithms end with "
        f"q < 0; of the other algorithms {negative} of {TRIALS * len(_REGULAR)} trials do",
        verdict=verdict(
            negative == 0 and max(shares) == 0,
            "holds with a condition" if negative == 0 and either_sign else "does not hold",
        ),
        recorded="holds with a condition",
        explanation="It does not for AdaOja with a small b0 and for CCIPCA counted from "
        "its first sample: their first samples outweigh the start, they settle on either "
        "sign, and |q| has to be reported.",
    )


def _oracle_is_as_good_as_offline_pca() -> Claim:
    ratios = [
        (1 - float(ino.oracle_overlap(OMEGA, 0.1, t)) ** 2)
        / (1 - float(ino.offline_overlap(OMEGA, t)) ** 2)
        for t in (T_MAX, _LATE)
    ]
    return Claim(
        source="beyond the paper",
        statement="the oracle is asymptotically as good as PCA on all samples so far",
        number=ratios[1],
        error=0.05,
        evidence=f"1 - q^2 of the oracle over that of offline PCA is {ratios[0]:.2f} at t "
        f"= {T_MAX:g} and {ratios[1]:.4f} at t = {_LATE:g}",
        verdict=verdict(1 <= ratios[1] < 1.05),
        recorded="holds",
        explanation="Both have 1 - q^2 = (1 + omega)/(omega^2 t) for large t: one pass "
        "with the best gain loses nothing at leading order.",
    )
