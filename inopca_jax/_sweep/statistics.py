"""The statistics of a cell's trials that a sweep keeps."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

STATISTICS = ("mean", "std", "quantiles", "trials")
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
OBSERVED = ("q", "abs_q", "lam")


def require_statistics(observables: Sequence[str]) -> tuple[str, ...]:
    """Returns the names of `STATISTICS` in `observables`, once each and in their order."""
    observables = (observables,) if isinstance(observables, str) else tuple(observables)
    for name in observables:
        if name not in STATISTICS:
            raise ValueError(
                f"observables = {observables!r} is not allowed: {name!r} is none of "
                f"{', '.join(STATISTICS)}."
            )
    if not observables:
        raise ValueError(f"observables is empty: name some of {', '.join(STATISTICS)}.")
    return tuple(name for name in STATISTICS if name in observables)


def fields(observables: Sequence[str], trials: int) -> list[str]:
    """Returns the names of the rows that `summary` returns."""
    names = ["finite"]
    for quantity in OBSERVED:
        if "mean" in observables:
            names.append(f"{quantity}_mean")
        if "std" in observables:
            names.append(f"{quantity}_std")
        if "quantiles" in observables:
            names += [f"{quantity}_quantile_{level}" for level in QUANTILES]
    if "trials" in observables:
        names += [f"{name}_trial_{i}" for name in ("q", "lam") for i in range(trials)]
    return names


def summary(
    q: Float[np.ndarray, "trials times"],
    lam: Float[np.ndarray, "trials times"],
    observables: Sequence[str],
) -> Float[np.ndarray, "fields times"]:
    """Returns the statistics of one cell, a row for each of `fields`.

    They are computed on the host, in double precision and in the order of the trials, so
    that they do not depend on the device. Trials that diverged are left out of the means,
    deviations and quantiles; `finite` counts the others.
    """
    q, lam = np.asarray(q, float), np.asarray(lam, float)
    is_finite = np.all(np.isfinite(q) & np.isfinite(lam), axis=1)
    rows = [np.full(q.shape[1], float(is_finite.sum()))]
    missing = np.full(q.shape[1], np.nan)
    for values in (q, np.abs(q), lam):
        finite = values[is_finite]
        if "mean" in observables:
            rows.append(finite.mean(axis=0) if len(finite) else missing)
        if "std" in observables:
            rows.append(finite.std(axis=0, ddof=1) if len(finite) > 1 else missing)
        if "quantiles" in observables:
            levels = [missing] * len(QUANTILES)
            rows += list(np.quantile(finite, QUANTILES, axis=0)) if len(finite) else levels
    if "trials" in observables:
        rows += [*q, *lam]
    return np.stack(rows)
