"""The statistics of a cell's trials that a sweep keeps."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from .._check import refuse, require_list

STATISTICS = ("mean", "std", "quantiles", "trials")
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
OBSERVED = ("q", "abs_q", "lam")


def require_statistics(observables: Any) -> tuple[str, ...]:
    """Returns the names of `STATISTICS` in `observables`, once each and in their order."""
    remedy = f"name some of {', '.join(STATISTICS)}"
    is_one = isinstance(observables, str)
    names = [observables] if is_one else require_list("observables", observables, remedy)
    if not names or not all(isinstance(n, str) and n in STATISTICS for n in names):
        refuse("observables", observables, remedy)
    return tuple(name for name in STATISTICS if name in names)


def fields(observables: Sequence[str], trials: int) -> list[str]:
    """Returns the names of the rows that `summary` returns."""
    nothing = np.zeros((trials, 1))
    return list(summary(nothing, nothing, observables))


def summary(
    q: Float[np.ndarray, "trials times"],
    lam: Float[np.ndarray, "trials times"],
    observables: Sequence[str],
) -> dict[str, Float[np.ndarray, " times"]]:
    """Returns the statistics of one cell by name.

    They are computed on the host, in double precision and in the order of the trials, so
    that they do not depend on the device. Trials that diverged are left out of the means,
    deviations and quantiles; `finite` counts the others.
    """
    q, lam = np.asarray(q, float), np.asarray(lam, float)
    is_finite = np.all(np.isfinite(q) & np.isfinite(lam), axis=1)
    rows = {"finite": np.full(q.shape[1], float(is_finite.sum()))}
    missing = np.full(q.shape[1], np.nan)
    for quantity, values in zip(OBSERVED, (q, np.abs(q), lam), strict=True):
        finite = values[is_finite]
        if "mean" in observables:
            rows[f"{quantity}_mean"] = finite.mean(axis=0) if len(finite) else missing
        if "std" in observables:
            is_known = len(finite) > 1
            rows[f"{quantity}_std"] = finite.std(axis=0, ddof=1) if is_known else missing
        if "quantiles" in observables:
            for level in QUANTILES:
                row = np.quantile(finite, level, axis=0) if len(finite) else missing
                rows[f"{quantity}_quantile_{level}"] = row
    if "trials" in observables:
        for quantity, values in (("q", q), ("lam", lam)):
            rows |= {f"{quantity}_trial_{i}": row for i, row in enumerate(values)}
    return rows
