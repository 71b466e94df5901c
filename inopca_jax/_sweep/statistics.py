"""What is kept of a cell's trials."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

STATISTICS = ("mean", "std", "quantiles", "trials")
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
OBSERVED = ("q", "abs_q", "lam")


def require_statistics(observables: Sequence[str]) -> tuple[str, ...]:
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
    """The rows of a cell's result, each over the times."""
    names = ["finite"]
    for what in OBSERVED:
        if "mean" in observables:
            names.append(f"{what}_mean")
        if "std" in observables:
            names.append(f"{what}_std")
        if "quantiles" in observables:
            names += [f"{what}_quantile_{level}" for level in QUANTILES]
    if "trials" in observables:
        names += [f"{what}_trial_{i}" for what in ("q", "lam") for i in range(trials)]
    return names


def summary(
    q: Float[np.ndarray, "trials times"],
    lam: Float[np.ndarray, "trials times"],
    observables: Sequence[str],
) -> Float[np.ndarray, "fields times"]:
    """The rows that `fields` names. On the host, in double precision and in the order of
    the trials; a trial that diverged is left out, and `finite` counts the others."""
    q, lam = np.asarray(q, float), np.asarray(lam, float)
    finite = np.all(np.isfinite(q) & np.isfinite(lam), axis=1)
    rows = [np.full(q.shape[1], float(finite.sum()))]
    nothing = np.full(q.shape[1], np.nan)
    for values in (q, np.abs(q), lam):
        good = values[finite]
        if "mean" in observables:
            rows.append(good.mean(axis=0) if len(good) else nothing)
        if "std" in observables:
            rows.append(good.std(axis=0, ddof=1) if len(good) > 1 else nothing)
        if "quantiles" in observables:
            empty = [nothing] * len(QUANTILES)
            rows += list(np.quantile(good, QUANTILES, axis=0)) if len(good) else empty
    if "trials" in observables:
        rows += [*q, *lam]
    return np.stack(rows)
