"""The unit of the data and a rate for them, from the first samples."""

import numpy as np
from jaxtyping import Float

# About twice the share of its square that the last component is off by in the end.
_OFF = 0.1
# What is less of the total than this many roundings is taken for rounding, as in `_decide`.
_ROUNDINGS = 100


def suitable_unit(first: Float[np.ndarray, "samples p"], center: bool) -> float:
    """In which the features of these samples have variance 1, on average.

    A `ValueError` if the variances, in the samples' own unit, are no numbers of their type.
    """
    dtype, (n, p) = first.dtype, first.shape
    # Multiplied by a power of two, which rounds nothing, so that squares are numbers.
    _, power = np.frexp(np.max(np.abs(first)))
    first = np.ldexp(np.asarray(first, float), -power)
    squares = np.mean((_centred(first) if center else first) ** 2)
    lost = n / (n - 1) if center and n > 1 else 1.0
    unit = float(np.ldexp(np.sqrt(squares * lost), power)) or 1.0
    limits = np.finfo(dtype)
    # With room below for components that are weaker than the features are on average.
    least, most = (limits.tiny / limits.eps) ** 0.5, (limits.max / p) ** 0.5
    if not least <= unit <= most:
        raise ValueError(
            f"samples of features with a standard deviation of about {unit:.3g} are not "
            f"allowed: explained_variance_, their squares, is beyond {dtype}. Rescale the "
            f"data, so that it is between {least:.1g} and {most:.1g}."
        )
    return unit


def suitable_tau(
    first: Float[np.ndarray, "samples p"], components: int, center: bool
) -> float:
    """A constant rate at which the last component comes to rest near its truth.

    In the steady state a component of variance `s` is off by a share `(tau/p) T/(2s)` of
    its square, where `T` is the variance that the components before it leave. How much a
    direction captures is measured on samples that did not choose it, for in high
    dimensions those that did say nothing: half of them choose, the others are measured,
    and then the other way round. Of data with fewer components than are asked for, the
    last is the last that there is.
    """
    rounding = _ROUNDINGS * np.finfo(first.dtype).eps
    first = np.asarray(first, float)
    if center:
        first = _centred(first)
    halves = first[::2], first[1::2]
    captured = [_captured(halves[i], halves[1 - i], components) for i in (0, 1)]
    captured = np.mean(captured, axis=0)
    total = np.mean(np.sum(first**2, axis=1))
    captured = captured[captured > rounding * total]
    if not captured.size:
        return _OFF
    left = max(total - np.sum(captured[:-1]), captured[-1])
    return float(first.shape[1] * _OFF * captured[-1] / left)


def _centred(samples: np.ndarray) -> np.ndarray:
    """The differences from the mean, which are 0 exactly if all samples are the same."""
    samples = samples - samples[0]
    return samples - np.mean(samples, axis=0)


def _captured(
    choosing: np.ndarray, measured: np.ndarray, components: int
) -> Float[np.ndarray, " directions"]:
    """The mean squares of `measured` along the main directions of `choosing`."""
    some = min(components, len(choosing) - 1, len(measured) - 1)
    if some < 1:
        return np.zeros(0)
    _, _, directions = np.linalg.svd(choosing, full_matrices=False)
    along = np.mean((measured @ directions[:some].T) ** 2, axis=0)
    return np.sort(along)[::-1]
