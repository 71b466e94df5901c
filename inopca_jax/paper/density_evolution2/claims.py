"""What the paper says about the densities of Example 2."""

import numpy as np

from ..claim import Arrays, Claims, Finding
from ..densities import add_claims
from ..statistics import SIGNIFICANT, Mean, mean_of

claims = Claims()
_MATCH = "The theory accurately captures the overall evolution of the density."
add_claims(claims, "density_evolution2", _MATCH)


@claims.add("fig:density_evolution2")
def mean_shift(arrays: Arrays) -> Finding:
    """The theory accurately captures the mean shift.

    In theory the mean is q_t E[xi]. It holds if differences are below 4 standard errors,
    and the shift is above.
    """
    means, theory = mean_of(arrays["trial_means"]), arrays["mean"]
    largest = np.abs((means - theory).standard_errors).max()
    shift = means[-1] - means[0]
    rows = zip(arrays["ts"], theory, means.value, means.error, strict=True)
    table = "; ".join(f"t = {t:g}: {a:.4f}, {Mean(b, e):.4f}" for t, a, b, e in rows)
    return Finding(
        means.value[-1],
        means.error[-1],
        f"the mean of x/lam in theory, then over trials: {table}; the largest difference "
        f"is {largest:.1f} standard errors. E[xi] is "
        f"{theory[-1] / arrays['q'][0, -1]:.3f}",
        largest < SIGNIFICANT and shift.value > SIGNIFICANT * shift.error,
    )
