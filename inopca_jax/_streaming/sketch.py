"""`Sketch`: weighted PCA that keeps a few directions more than it returns."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

from .._check import as_number, require, require_whole
from .._module import PublicModule
from .._types import Real, Vector
from .weights import Mean, block_weights, correction, sample_weights

# Up to how many features more samples are merged at a time, and how many.
_FEW_FEATURES, _MANY_SAMPLES, _SAMPLES = 128, 128, 64
# The largest count of samples before a block: one block more is the most in 32 bits.
_LARGEST_COUNT = 2**31 - 1 - _MANY_SAMPLES
# How many times faster the mean forgets by which samples are centred, and its least memory.
_FASTER, _LEAST_MEMORY = 32.0, 2.0
# A direction below this many roundings of the longest one consists of rounding errors.
_ROUNDINGS = 100


def _as_directions(value: Any) -> int:
    remedy = "pass a whole number of directions for each component, at least 1"
    return require_whole("directions", value, 1, remedy)


class Sketch(PublicModule):
    """PCA of all samples so far, or of those in a memory, from a few kept directions.

    It estimates the leading eigenvectors of the covariance

        C = sum_n w_n (y_n - mean)(y_n - mean)^T,   w_n falling as exp(-age/memory),

    by keeping the `directions * components` leading ones of them: a block of samples and
    the kept directions are decomposed together, and the leading directions of both are
    kept. With an infinite memory all samples have equal weight, as in scikit-learn's
    `IncrementalPCA`, which keeps as many directions as it returns. Nothing else has to be
    chosen: there is no learning rate, no start, and no scale.

    It takes the place of a rule in `stream_pca`, `init_components`, `update_components` and
    `StreamingPCA`. It is not of the form of a rule, so that there is no mean field of it.
    If all directions were kept its limit in high dimensions would be `forgetting_overlap`.
    With few, where the memory is short against the dimension, it has a smaller error at
    rest and follows a change more slowly, both as with a longer memory: see there.

    With a finite memory samples are centred by a mean that forgets 32 times faster than
    `mean`. If the mean jumps, only the samples until it has followed add a wrong direction.
    It costs the accuracy of a memory that is shorter by `16/memory`.

    **Arguments:**

    - `memory`: after how many samples the weight of one has fallen to 1/e: at least 1, or
        infinite. In float32 it is at most 2^28. The first samples have equal weights.
    - `directions`: how many directions are kept for each component.

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> from inopca_jax import data
    >>> stream = data.Drift([9.0, 4.0], p=20)
    >>> found = ino.stream_pca(ino.Sketch(memory=500), stream.samples(1000), components=2)
    >>> bool(ino.grassmann_distance(found.components, stream.basis(0)) < 0.3)
    True
    ```
    """

    memory: Real = eqx.field(converter=as_number("memory"), default=float("inf"))
    directions: int = eqx.field(static=True, converter=_as_directions, default=2)

    def __check_init__(self):
        require("memory", self.memory, lambda m: m >= 1, "pass at least 1, or inf")

    def kept(self, components: int, p: int) -> int:
        """Returns how many directions are kept.

        **Arguments:**

        - `components`: the number of components.
        - `p`: the number of features.
        """
        return min(self.directions * components, p)


class SketchState(eqx.Module):
    """The kept directions after a number of samples.

    - `vectors`: orthogonal rows by falling length. Their products sum up to the covariance,
        with weights that add up to 1, as far as the kept directions go.
    - `average`: the weighted mean, and its rounding error.
    - `local`: what the mean by which samples are centred differs from that.
    - `variance`: the variance of each feature, with the weights of the samples.
    - `share`: the expected variance over the true one: less than 1, because the mean that
        is subtracted is estimated.
    - `squares`: the sum of the squares of the samples' weights in the local mean.
    - `count`: the number of samples.
    - `size`: the number of components.
    """

    vectors: Float[Array, "kept p"]
    average: Mean
    local: Vector
    variance: Vector
    share: Real
    squares: Real
    count: Int[Array, ""]
    size: int = eqx.field(static=True)

    @property
    def mean(self) -> Vector:
        """The weighted mean of the samples; zero unless they are centred."""
        return self.average.value

    @property
    def components(self) -> Float[Array, "components p"]:
        """The leading directions, orthonormal; a row is zero if the samples do not
        determine it."""
        vectors = self.vectors[: self.size]
        lengths = _lengths(vectors)
        noise = _ROUNDINGS * float(jnp.finfo(lengths.dtype).eps) * lengths[0]
        is_determined = lengths > noise
        # Short rows are orthogonal to long ones only up to the rounding of these.
        unit = vectors / jnp.where(is_determined, lengths, 1)[:, None]
        basis, triangle = jnp.linalg.qr(unit.T)
        sign = jnp.where(is_determined, jnp.where(jnp.diagonal(triangle) < 0, -1, 1), 0)
        return sign.astype(lengths.dtype)[:, None] * basis.T

    def eigenvalues(self, sketch: Sketch) -> Float[Array, " components"]:
        """Returns the covariance's leading eigenvalues: the squares of the lengths, without
        the bias that is due to the estimated mean."""
        del sketch  # the eigenvalues of a rule depend on it
        return _lengths(self.vectors[: self.size]) ** 2 * self.correction

    @property
    def correction(self) -> Real:
        """The factor that makes `variance` unbiased."""
        return correction(self.share)


def merged_samples(p: int) -> int:
    """Returns how many samples are merged at a time. The bits depend on it.

    To decompose them costs about the cube of their number, but no more than that of `p`:
    with few features more at a time cost less.
    """
    return _MANY_SAMPLES if p <= _FEW_FEATURES else _SAMPLES


def initial_sketch(sketch: Sketch, components: int, p: int, dtype: Any) -> SketchState:
    """Returns the state before the first sample: all directions are zero."""
    vectors = jnp.zeros((sketch.kept(components, p), p), dtype)
    zero, zeros = jnp.zeros((), dtype), jnp.zeros(p, dtype)
    count, mean = jnp.zeros((), jnp.int32), Mean(zeros, zeros)
    return SketchState(vectors, mean, zeros, zeros, zero, zero, count, components)


def update_sketch(
    sketch: Sketch,
    state: SketchState,
    samples: Float[Array, "samples p"],
    valid: Int[Array, ""],
    center: bool,
) -> SketchState:
    """Returns the state after more samples.

    **Arguments:**

    - `samples`: shape `(samples, p)`, a multiple of `merged_samples(p)` of them, or fewer.
    - `valid`: how many of the samples to use; those after them are padding.
    - `center`: whether to subtract the weighted mean.
    """
    size = min(merged_samples(samples.shape[1]), len(samples))
    blocks = samples.reshape(-1, size, samples.shape[1])

    def merge(i: Array, state: SketchState) -> SketchState:
        return _merge(sketch, state, blocks[i], jnp.minimum(valid - i * size, size), center)

    return lax.fori_loop(0, (valid + size - 1) // size, merge, state)


def _merge(
    sketch: Sketch,
    state: SketchState,
    samples: Float[Array, "block p"],
    valid: Int[Array, ""],
    center: bool,
) -> SketchState:
    """Returns the state after the first `valid` samples of a block."""
    dtype, count = samples.dtype, jnp.minimum(state.count, _LARGEST_COUNT)
    memory, exact = sketch.memory.astype(dtype), lax.Precision.HIGHEST
    # With a weight below a rounding a block would not shorten the kept directions, which
    # would grow without limit.
    rounding = float(jnp.finfo(dtype).eps) / 32
    least = jnp.maximum(-jnp.expm1(-1 / memory), rounding)
    least_local = -jnp.expm1(-1 / jnp.maximum(memory / _FASTER, _LEAST_MEMORY))
    entering, entering_local = (
        sample_weights(jnp.maximum(weight, rounding), count, valid, len(samples))
        for weight in (least, least_local)
    )
    weights, local = (block_weights(w, center) for w in (entering, entering_local))
    origin, differences = state.average.differences(samples, count, center)
    differences = jnp.where(entering[:, None] > 0, differences, 0)
    to_rows = jnp.sqrt(weights.sample)[:, None] * local.centring
    added = jnp.matmul(to_rows, differences - state.local[None], precision=exact)
    # The root of the kept weight, minus 1, with all of its digits.
    shrink = jnp.expm1(0.5 * jnp.log1p(weights.kept_minus_1))
    rows = jnp.concatenate([state.vectors + shrink * state.vectors, added])
    vectors = _leading_rows(rows, len(state.vectors))
    added_variance = jnp.sum(added**2, axis=0)
    variance = state.variance + weights.kept_minus_1 * state.variance + added_variance
    count = count + valid
    if not center:
        one = jnp.ones_like(state.share)
        unmoved = (state.average, state.local, variance, one, state.squares)
        return SketchState(vectors, *unmoved, count, state.size)
    # A row's expected square, if all samples have the variance 1.
    squares = jnp.sum(local.centring**2, axis=1)
    squares += (1 - local.entering) * local.kept_before**2 * state.squares
    added_share = jnp.sum(weights.sample * squares)
    share = state.share + weights.kept_minus_1 * state.share + added_share
    squares = (1 + local.kept_minus_1) ** 2 * state.squares + jnp.sum(local.sample**2)
    mean_shift = jnp.sum(weights.sample[:, None] * differences, axis=0)
    apart = jnp.sum((local.sample - weights.sample)[:, None] * differences, axis=0)
    apart = state.local + local.kept_minus_1 * state.local + apart
    mean = state.average.moved(origin, mean_shift)
    return SketchState(vectors, mean, apart, variance, share, squares, count, state.size)


def _leading_rows(rows: Float[Array, "rows p"], kept: int) -> Float[Array, "kept p"]:
    """Returns the `kept` longest of the orthogonal rows that have the covariance of all."""
    exact, (n, p) = lax.Precision.HIGHEST, rows.shape
    if n <= p:
        _, vectors = jnp.linalg.eigh(jnp.matmul(rows, rows.T, precision=exact))
        return jnp.matmul(vectors[:, ::-1][:, :kept].T, rows, precision=exact)
    _, vectors = jnp.linalg.eigh(jnp.matmul(rows.T, rows, precision=exact))
    leading = vectors[:, ::-1][:, :kept]
    # Not the eigenvalues: of small ones these have the rounding errors of the largest.
    return _lengths(jnp.matmul(rows, leading, precision=exact).T)[:, None] * leading.T


def _lengths(vectors: Float[Array, "rows p"]) -> Float[Array, " rows"]:
    return jnp.sqrt(jnp.sum(vectors**2, axis=1))
