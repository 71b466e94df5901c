"""The scale of the data and a learning rate for them, from the first samples."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from .._observables import Observables
from .._rule import AbstractAlgorithm, AbstractRule

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
    rule: AbstractAlgorithm,
    first: Float[np.ndarray, "samples p"],
    components: int,
    center: bool,
) -> float:
    """Returns a constant rate at which the last component settles near the true one.

    A step of gain `nu` adds to a component of variance `s` the sample's part along it with
    the weight `w = nu s/p`, relative to the component. In the steady state `1 - q^2` is
    about `w T/(2s)`, where `T` is the variance of the data less that of the components
    before it. INO-PCA, whose norm is `s`, has `nu = tau/s`: the weight is `tau/p` for every
    component. For other rules the rate is that at which the last component's weight is the
    same, if their gain is proportional to the rate.

    The variance along a direction has to be estimated from other samples than the
    direction: in high dimensions the samples that a direction was fitted to overestimate
    it. So directions are fitted to each half of the samples and measured on the other half.
    If the data have fewer components than asked for, the last one that they have is used.

    **Arguments:**

    - `rule`: the rule with the rate 1.
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
    last, p = captured[-1], first.shape[1]
    return float(p * _STEADY_ERROR * last / remaining / _unit_weight(rule, last, total, p))


def _unit_weight(rule: AbstractAlgorithm, variance: float, total: float, p: int) -> float:
    """Returns p times the weight of a sample in a component of a variance, at rate 1."""
    if not isinstance(rule, AbstractRule):  # of all components at once
        return 1.0
    norm = 1.0 if rule.projects else variance
    lam, s2, r, t, size = (jnp.asarray(x, float) for x in (norm, variance, total / p, 1, p))
    observables = Observables(lam=lam, s2=s2, r=r, t=t, p=size)
    return float(rule.rates(observables, jnp.ones_like(lam)).gain) * variance


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
