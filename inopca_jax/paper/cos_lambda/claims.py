"""What the paper says about the overlap and the norm over time."""

import numpy as np

from ..claim import Arrays, Claims, Finding
from ..learning_curves import OMEGA
from ..statistics import SIGNIFICANT, Mean, mean_of
from .compute import T_MAX

# The largest distance of the ODE from its limit at T_MAX that counts as agreement.
MAX_DISTANCE = 1e-3

claims = Claims()


def _ode_predicts(arrays: Arrays, field: str, symbol: str) -> Finding:
    """The ODE accurately predicts {symbol}.

    The ODE is the limit of large p: trials scatter about it by O(1/sqrt(p)), and their mean
    differs from it by O(1/p). It holds if the difference is below 4 standard errors at all
    times.
    """
    ts, values = arrays["INO-PCA/theory/ts"], arrays[f"INO-PCA/runs/{field}"].astype(float)
    ode, shift, std = (
        arrays[f"INO-PCA/theory/{field}{x}"].astype(float) for x in ("", "_shift", "_std")
    )
    fluctuates = std > 1e-6  # all times, except for the norm at the start
    # The predicted standard deviations, because those measured over 20 trials have an error
    # of a sixth, and the smallest of a hundred would be far too small.
    gap = Mean(values.mean(axis=0) - ode, std / len(values) ** 0.5)[fluctuates]
    standard_errors = np.abs(gap.standard_errors)
    worst, widest = int(np.argmax(standard_errors)), int(np.argmax(np.abs(shift)))
    ratio = values.std(axis=0, ddof=1)[fluctuates] / std[fluctuates]
    return Finding(
        gap.value[worst],
        gap.error[worst],
        f"the mean of {len(values)} trials differs from the ODE by at most "
        f"{np.abs(gap.value).max():.4f}, and by at most {standard_errors.max():.1f} "
        f"standard errors (at t = {ts[fluctuates][worst]:.3g}); at this p theory predicts "
        f"a difference of up to {shift[widest]:+.4f}, at t = {ts[widest]:.3g}. The "
        f"measured standard deviations are {ratio.min():.2f} to {ratio.max():.2f} times "
        "the predicted ones",
        standard_errors.max() < SIGNIFICANT,
    )


claims.add("eq:Q_t", field="q", symbol="Q_t")(_ode_predicts)
claims.add("eq:lambda_t", field="lam", symbol="lambda_t")(_ode_predicts)


@claims.add("fig:cos_lambda")
def norm_grows(arrays: Arrays) -> Finding:
    """lambda_t increases as the learning proceeds and converges to omega + 1.

    For this start, q0 = 0.1 and lam0 = 1, and in the mean: at finite p the norm of a single
    trial keeps fluctuating by O(1/sqrt(p)).
    """
    lam, last = arrays["INO-PCA/theory/lam"], arrays["INO-PCA/runs/lam"][:, -1]
    mean, limit = mean_of(last), OMEGA + 1
    ode_gap = lam[-1] - limit
    increases = np.all(np.diff(lam) > -1e-6)
    return Finding(
        mean.value,
        mean.error,
        f"the norm of the ODE {'never decreases' if increases else 'decreases at times'}, "
        f"and is {ode_gap:+.1e} from omega + 1 at t = {T_MAX:g}; the trials' mean there is "
        f"{mean:.4f}, with a standard deviation of {last.std(ddof=1):.3f} over trials",
        increases and abs(ode_gap) < MAX_DISTANCE and not (mean - limit).is_significant,
    )
