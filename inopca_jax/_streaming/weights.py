"""The weights of samples in averages that forget, and the mean and variance by them.

Sample `n` enters an average with the weight `w_n`, and all before it keep the rest:

    mean_n = (1 - w_n) mean_{n-1} + w_n y_n
    C_n = (1 - w_n) (C_{n-1} + w_n d d^T),   d = y_n - mean_{n-1}

With `w_n = 1/n` these are the mean and the covariance of all `n` samples. Where the weight
stays above a `least` one, old samples are forgotten.
"""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from .._numerics import fast_two_sum
from .._types import Real, Vector


class BlockWeights(eqx.Module):
    """The weights of a block of samples.

    - `entering`: the weights `w_n` with which they enter.
    - `sample`: their weights in an average after the block.
    - `kept_minus_1`: the weight of the average before it, minus 1: in a long average it is
        so near to 1 that its digits would not hold the difference.
    - `kept_before`: the weight of the average before the block in that before each sample.
    - `centring`: maps the samples' differences from the mean before the block to
        `sqrt(1 - w_n) d`. With that factor the squares of differences from the mean before
        a sample add up to those from the mean after it, for every `n`: the centred stream
        has the covariance of the data, without a bias at its start.
    """

    entering: Float[Array, " block"]
    sample: Float[Array, " block"]
    kept_minus_1: Real
    kept_before: Float[Array, " block"]
    centring: Float[Array, "block block"]


class Mean(eqx.Module):
    """The weighted mean of a stream; zero unless samples are centred.

    - `value`: the mean.
    - `compensation`: the rounding error of it, to be added to it: a late block changes the
        mean by less than its last digit.
    """

    value: Vector
    compensation: Vector

    @classmethod
    def zero(cls, p: int, dtype: Any) -> "Mean":
        """Returns the mean before the first sample."""
        return cls(jnp.zeros(p, dtype), jnp.zeros(p, dtype))

    def differences(
        self, samples: Float[Array, "block p"], count: Int[Array, ""], center: bool
    ) -> tuple[Vector, Float[Array, "block p"]]:
        """Returns the mean of a block's `count` predecessors and the differences from it.

        The first sample of a stream is its own origin, so that a large offset of the data
        costs no digits.
        """
        first = samples[0] if center else self.value
        origin = jnp.where(count == 0, first, self.value)
        return origin, (samples - origin[None]) - self.compensation[None]

    def moved(self, origin: Vector, shift: Vector) -> "Mean":
        """Returns the mean that is `shift` away from that before the block."""
        return Mean(*fast_two_sum(origin, self.compensation + shift))


class Moments(eqx.Module):
    """The weighted mean and variance of a stream, feature by feature.

    - `mean`: the mean.
    - `variance`: the variance about the mean, with weights that add up to 1.
    - `bias`: the share of a variance that is lost because the mean is estimated from the
        same samples: the sum of the squares of the weights, `1/n` if these are equal.
    """

    mean: Mean
    variance: Vector
    bias: Real

    @classmethod
    def zero(cls, p: int, dtype: Any) -> "Moments":
        """Returns the moments before the first sample."""
        return cls(Mean.zero(p, dtype), jnp.zeros(p, dtype), jnp.zeros((), dtype))

    def updated(
        self,
        weights: BlockWeights,
        origin: Vector,
        differences: Float[Array, "block p"],
        center: bool,
    ) -> "Moments":
        """Returns the moments after a block with these differences from `origin`."""
        w, kept = weights.sample, 1 + weights.kept_minus_1
        # The padding's weight is 0, and its squares might not be finite.
        seen = jnp.where(w[:, None] > 0, differences, 0)
        shift = jnp.sum(w[:, None] * seen, axis=0)
        about_origin = jnp.sum(w[:, None] * seen**2, axis=0)
        variance = self.variance + weights.kept_minus_1 * self.variance + about_origin
        if not center:
            return Moments(self.mean, variance, self.bias)
        bias = kept**2 * self.bias + jnp.sum(w**2)
        variance = jnp.maximum(variance - shift**2, 0)
        return Moments(self.mean.moved(origin, shift), variance, bias)


def correction(share: Real) -> Real:
    """Returns the factor that makes a variance unbiased of which only a share is expected:
    `n/(n - 1)` for `1 - 1/n`. It is 1 for a single sample, whose variance is 0."""
    few = share <= 8 * float(jnp.finfo(share.dtype).eps)
    return 1 / jnp.where(few, 1, share)


def sample_weights(
    least: Real, count: Int[Array, ""], valid: Int[Array, ""], size: int
) -> Float[Array, " block"]:
    """Returns the weights `max(1/n, least)` of a block's samples as they enter.

    **Arguments:**

    - `least`: the weight below which `1/n` does not fall.
    - `count`: the number of samples before the block.
    - `valid`: how many of the block's `size` samples are no padding, whose weight is 0.
    """
    rows = jnp.arange(size, dtype=jnp.int32)
    weights = jnp.maximum(1 / (count + rows + 1).astype(least.dtype), least)
    return jnp.where(rows < valid, weights, 0)


def block_weights(entering: Float[Array, " block"], center: bool) -> BlockWeights:
    """Returns the weights after a block from those with which its samples enter."""
    size = len(entering)
    # The first sample of a stream enters with weight 1. There is nothing before it to lose.
    logs = jnp.log1p(-jnp.where(entering < 1, entering, 0))
    from_here = jnp.cumsum(logs[::-1])[::-1]  # of this sample and those after it
    after = jnp.append(from_here[1:], jnp.zeros((), logs.dtype))
    sample = entering * jnp.exp(after)
    kept_minus_1, one = jnp.expm1(from_here[0]), jnp.eye(size, dtype=logs.dtype)
    kept_before = jnp.exp(jnp.cumsum(logs) - logs)
    if not center:
        return BlockWeights(entering, sample, kept_minus_1, kept_before, one)
    # Sample i has in the mean before sample j > i the weight w_i prod_{i<l<j} (1 - w_l).
    between = after[None] - from_here[:, None]
    earlier = jnp.tri(size, k=-1, dtype=bool)
    in_mean = jnp.where(earlier, entering[None] * jnp.exp(between), 0)
    centring = jnp.sqrt(1 - entering)[:, None] * (one - in_mean)
    return BlockWeights(entering, sample, kept_minus_1, kept_before, centring)
