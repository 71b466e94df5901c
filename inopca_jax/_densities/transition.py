"""The law of an entry of the estimate at a later time, given its value at an earlier one.

The drift of an entry is affine, so that within a segment, in which the spike stays the
same, `x_t = scale x_0 + shift xi + noise_std g` with an independent standard normal `g`.
"""

import equinox as eqx
from jaxtyping import Array

from .._numerics import root
from .._order_parameters.path import Path
from .._types import Real


class AffineTransition(eqx.Module):
    """The coefficients of `x_t = scale x_0 + shift xi + noise_std g`.

    If `x_0` is the start of a run with an `AbstractGaussianStart`, then `x_t` given `xi`
    is `N(gaussian_slope xi, gaussian_std^2)`. All fields have the shape of the times.
    """

    scale: Array
    shift: Array
    noise_std: Array
    gaussian_slope: Array
    gaussian_std: Array


def transitions(path: Path, segment: int) -> AffineTransition:
    """Returns the transitions from the begin of a segment to all times of `path`.

    Only those to times inside the segment are meaningful.
    """
    return _transition(path.begins[segment], path.q, path.lam, path.shrink)


def transition_to_end(path: Path, segment: int) -> AffineTransition:
    """Returns the transition from the begin of a segment to its end."""
    return _transition(path.begins[segment], *path.ends[segment])


def _transition(
    begin: tuple[Real, Real], q: Array, lam: Array, scale: Array
) -> AffineTransition:
    q0, lam0 = begin
    variance = lam**2 * (1 - q**2)
    # At the begin the difference is zero up to rounding, which may make it negative.
    noise_variance = variance - scale**2 * lam0**2 * (1 - q0**2)
    return AffineTransition(
        scale=scale,
        shift=q * lam - scale * q0 * lam0,
        noise_std=root(noise_variance),
        gaussian_slope=q * lam,
        gaussian_std=root(variance),
    )
