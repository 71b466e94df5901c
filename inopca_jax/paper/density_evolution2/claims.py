"""What the paper says about the densities of Example 2."""

import numpy as np

from ..claim import Claim, verdict
from ..densities import MAX_STANDARD_ERRORS, match_claim, moments_claim
from ..figure import Arrays


def claims(arrays: Arrays) -> list[Claim]:
    """Returns the checked claims."""
    statement = "the theory accurately captures the overall evolution of the density"
    match = match_claim(arrays, "fig:density_evolution2", statement)
    return [match, _mean_shift(arrays), moments_claim(arrays)]


def _mean_shift(arrays: Arrays) -> Claim:
    """Checks that the mean moves, and that it moves as theory predicts."""
    trial_means, theory = arrays["trial_means"], arrays["mean"]
    mean = trial_means.mean(axis=0)
    error = trial_means.std(axis=0, ddof=1) / len(trial_means) ** 0.5
    gap = np.abs(mean - theory) / error
    shift = (mean[-1] - mean[0]) / np.hypot(error[-1], error[0])
    rows = zip(arrays["ts"], theory, mean, error, strict=True)
    table = "; ".join(f"t = {t:g}: {a:.4f}, {b:.4f} +- {e:.4f}" for t, a, b, e in rows)
    return Claim(
        "fig:density_evolution2",
        "the theory accurately captures the mean shift",
        float(mean[-1]),
        float(error[-1]),
        f"the mean of x/lam in theory, then over trials: {table}; the largest difference "
        f"is {gap.max():.1f} standard errors",
        verdict(bool(gap.max() < MAX_STANDARD_ERRORS < shift)),
        "holds",
        f"In theory the mean is q_t E[xi], here {theory[-1] / arrays['q'][0, -1]:.3f} q_t. "
        f"It holds if differences are below {MAX_STANDARD_ERRORS:g} standard errors, and "
        "the shift is above.",
    )
