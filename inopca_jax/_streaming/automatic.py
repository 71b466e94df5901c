"""The scale of the data and a learning rate for them, from the first samples."""

import numpy as np
from jaxtyping import Float

# The steady-state error of the last component: about twice `1 - q^2`.
_STEADY_ERROR = 0.1
# A variance below this many units of rounding of the total counts as zero, as in
# `block._step_component`.
_ROUNDINGS = 100


def data_scale(first: Float[np.ndarray, "samples p"], center: bool) -> float:
    """Returns the number by which the samples are divided: the root of the mean variance of
    their features.

    A `ValueError` is raised if variances of this scale overflow or underflow the samples'
    type.
    """
    dtype, (n, p) = first.dtype, first.shape
    # Divided by a power of two, which is exact, so that squares do not overflow.
    _, power = np.frexp(np.max(np.abs(first)))
    first = np.ldexp(np.asarray(first, float), -power)
    squares = np.mean((_centred(first) if center else first) ** 2)
    bessel = n / (n - 1) if center and n > 1 else 1.0
    scale = float(np.ldexp(np.sqrt(squares * bessel), power)) or 1.0
    limits = np.finfo(dtype)
    # With room below for components that are weaker than the average feature.
    least, most = (limits.tiny / limits.eps) ** 0.5, (limits.max / p) ** 0.5
    if not least <= scale <= most:
        raise ValueError(
            f"samples of features with a standard deviation of about {scale:.3g} are not "
            f"allowed: explained_variance_, its square, cannot be held in {dtype}. Rescale "
            f"the data, so that it is between {least:.1g} and {most:.1g}."
        )
    return scale


def automatic_tau(
    first: Float[np.ndarray, "samples p"], components: int, center: bool
) -> float:
    """Returns a constant rate at which the last component settles near the true one.

    In the steady state a component of variance `s` has about `1 - q^2 = (tau/p) T/(2s)`,
    where `T` is the variance of the data less that of the components before it. The
    variance along a direction has to be estimated from other samples than the direction: in
    high dimensions the samples that a direction was fitted to overestimate it. So
    directions are fitted to each half of the samples and measured on the other half. If the
    data have fewer components than asked for, the last one that they have is used.
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
        return _STEADY_ERROR
    remaining = max(total - np.sum(captured[:-1]), captured[-1])
    return float(first.shape[1] * _STEADY_ERROR * captured[-1] / remaining)


def _centred(samples: np.ndarray) -> np.ndarray:
    """Returns the samples minus their mean; exactly 0 if all samples are equal."""
    samples = samples - samples[0]
    return samples - np.mean(samples, axis=0)


def _captured(
    fitted: np.ndarray, measured: np.ndarray, components: int
) -> Float[np.ndarray, " directions"]:
    """Returns the mean squares of `measured` along the principal directions of `fitted`,
    the largest first."""
    count = min(components, len(fitted) - 1, len(measured) - 1)
    if count < 1:
        return np.zeros(0)
    _, _, directions = np.linalg.svd(fitted, full_matrices=False)
    squares = np.mean((measured @ directions[:count].T) ** 2, axis=0)
    return np.sort(squares)[::-1]
