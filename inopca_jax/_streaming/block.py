"""Updates several components by a block of samples: `alg:INO-PCA_multiple_pc`.

A sample updates the first component; its residual, after the projection on that component
is subtracted, updates the second, and so on.
"""

import functools
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from .._engine import defaults
from .._engine.deflation import component_step
from .._engine.update import RankOneUpdate
from .._engine.vector_step import step_with_vector, vectors_of
from .._observables import Observables
from .._rule import (
    AbstractAlgorithm,
    AbstractRule,
    AbstractSubspaceRule,
    InoPCA,
    initial_states,
)
from .._schedule import Constant
from .._types import Real, ScheduleState, Vector
from .._xla import supported
from .subspace_block import Sample, SubspaceSteps, take_subspace_steps
from .weights import Moments, block_weights, correction, sample_weights

BLOCK = 64
"""How many samples go into one pair of matrix products. The bits depend on it."""

_AMNESIA = 2.0
# The largest count of samples before a block: one block more is the most in 32 bits. In
# a longer stream the count stays here.
_LARGEST_COUNT = 2**31 - 1 - BLOCK


class Estimates(eqx.Module):
    """The estimates of the components after a number of samples.

    - `vectors`: the algorithm's vectors over `sqrt(p)`, so that their lengths are the norms
        that rules use. A component that no sample has started is zero.
    - `schedule`: the state of the rule's schedule, for each component; of a rule that acts
        on all components at once its `SubspaceState`.
    - `captured`: a running mean of the squared projection of a sample on each component, in
        which late samples have a larger weight.
    - `moments`: the mean and the variance of the features. With a constant rate they forget
        old samples as the last component does (`least_weight`).
    - `count`: the number of samples.
    - `schedule_vectors`: the vectors that the schedules keep, if they do.
    """

    vectors: Float[Array, "components p"]
    schedule: ScheduleState
    captured: Float[Array, " components"]
    moments: Moments
    count: Int[Array, ""]
    schedule_vectors: Float[Array, "components p"] | None = None

    @property
    def size(self) -> int:
        """The number of components."""
        return len(self.vectors)

    @property
    def mean(self) -> Vector:
        """The mean of the samples; zero unless they are centred."""
        return self.moments.mean.value

    @property
    def variance(self) -> Vector:
        """The variance of each feature about the mean, or about zero."""
        return self.moments.variance

    @property
    def correction(self) -> Real:
        """The factor that makes `variance` unbiased."""
        return correction(1 - self.moments.bias)

    @property
    def components(self) -> Float[Array, "components p"]:
        """The vectors, orthonormalised in their order.

        The first `n` rows have the span of the first `n` vectors, for every `n`. A row is
        zero if its vector is zero up to rounding, or lies in the span of those before it.
        The vectors are nearly orthogonal already: from every sample its projection on a
        component is subtracted before the next component uses it.
        """
        basis, triangle = jnp.linalg.qr(self.vectors.T)
        diagonal = jnp.diagonal(triangle)
        lengths = jnp.sqrt(jnp.sum(self.vectors**2, axis=1))
        eps = float(jnp.finfo(diagonal.dtype).eps)
        is_new = jnp.abs(diagonal) > eps ** (1 / 3) * lengths
        # A component that captures less than another's rounding errors consists of them.
        is_new = is_new & (self.captured > eps * jnp.max(self.captured))
        sign = jnp.where(is_new, jnp.where(diagonal < 0, -1, 1), 0).astype(diagonal.dtype)
        return sign[:, None] * basis.T

    def eigenvalues(self, rule: AbstractAlgorithm) -> Float[Array, " components"]:
        """Returns estimates of the covariance's eigenvalues: the lengths of INO-PCA's
        vectors, which converge to them, or `captured` for other rules."""
        if isinstance(rule, InoPCA):
            return jnp.sqrt(jnp.sum(self.vectors**2, axis=1))
        return self.captured


class _Products(NamedTuple):
    """Inner products of a component's vector and the residual of its sample.

    The residual is the sample minus its projections on the components before this one.
    """

    yx: Array
    """Of the vector with the residual."""
    lam2: Array
    """Of the vector with itself."""
    yy: Array
    """Of the residual with itself."""
    gross: Array
    """The sum of the lengths of the terms whose sum is the residual."""
    whole: Array
    """The length of the sample."""


class _Step(NamedTuple):
    """One step of a component."""

    captured: Array
    """As in `Estimates`."""
    growth: Array
    """The coefficient, minus 1, of the vector at the block's start in the vector after this
    step. Minus 1 because a step changes it by about tau/p: rounding of a number near 1
    would lose that, or a part of it, at every step in the same way."""
    keep_minus_1: Array
    coef: Array
    rescale: Array
    projection: Array
    """How many times the vector is subtracted from the residual."""

    @property
    def update(self) -> RankOneUpdate:
        return RankOneUpdate(self.keep_minus_1, self.coef, self.rescale)


class _OwnVectors(NamedTuple):
    """The vectors that the schedules keep, and the step that is still to be applied."""

    pairs: Float[Array, "components 2 basis"]
    """The coordinates in the basis, and the inner products with it."""
    factors: Float[Array, "components 3"]
    """The factors of the vector, the component and the residual in its change."""

    def moved(self, vectors: Array, residuals: Array) -> "_OwnVectors":
        """Returns the vectors after their step, given the components and the residuals
        before it."""
        keep, along, pull = (f[:, None, None] for f in self.factors.T)
        change = keep * self.pairs + along * vectors + pull * residuals
        return _OwnVectors(self.pairs + change, self.factors)

    def products(self, vectors: Array, residuals: Array) -> tuple[Array, Array]:
        """Returns the products with the components and with the residuals."""
        gx, gy = (
            jnp.sum(self.pairs[:, 0] * other[:, 1], axis=1)
            for other in (vectors, residuals)
        )
        return gx, gy


def initial_estimates(
    rule: AbstractAlgorithm, components: int, p: int, dtype: Any
) -> Estimates:
    """Returns the estimates before the first sample: all vectors are zero."""
    states = initial_states(rule, p, components)
    if isinstance(rule, AbstractSubspaceRule):
        schedule = jax.tree.map(lambda m: m.astype(dtype), states[0])
    else:
        schedule = jax.tree.map(lambda *ms: jnp.stack(ms).astype(dtype), *states)
    zeros = lambda *shape: jnp.zeros(shape, dtype)
    count = jnp.zeros((), jnp.int32)
    vectors, captured = zeros(components, p), zeros(components)
    moments = Moments.zero(p, dtype)
    schedule_vectors = zeros(components, p) if vectors_of(rule, components) else None
    return Estimates(vectors, schedule, captured, moments, count, schedule_vectors)


def least_weight(rule: AbstractAlgorithm, estimates: Estimates) -> Real:
    """Returns the weight of a sample in the component that forgets the most slowly.

    A step adds `(nu/p) (y.x) y` to `x`: along `x` that is, relative to `x`, `nu/p` times
    the variance of the samples there. For INO-PCA, whose norm is that variance, it is
    `tau/p`. It is 0 if the rate is not constant: then nothing is forgotten at a fixed pace;
    and for rules that act on all components at once, whose step is not of that form.
    """
    captured = estimates.captured
    has_gain = isinstance(rule, AbstractRule)
    if not has_gain or not isinstance(tau := rule.tau, Constant):
        return jnp.zeros((), captured.dtype)
    lam2 = jnp.sum(estimates.vectors**2, axis=1)
    begun = (lam2 > 0) & (captured > 0)
    lam2, captured = jnp.where(begun, lam2, 1), jnp.where(begun, captured, 1)
    p = jnp.asarray(estimates.vectors.shape[1], captured.dtype)
    r, t = jnp.sum(estimates.variance) / p, estimates.count.astype(p.dtype) / p
    observables = lambda lam2, s2: Observables(jnp.sqrt(lam2), s2, r, t, p)
    gain = jax.vmap(lambda lam2, s2: rule.rates(observables(lam2, s2), tau.value).gain)
    weights = jnp.where(begun, gain(lam2, captured) * captured / p, jnp.inf)
    return jnp.where(jnp.any(begun), jnp.clip(jnp.min(weights), 0, 1), 0)


def update(
    rule: AbstractAlgorithm,
    estimates: Estimates,
    samples: Float[Array, "samples p"],
    valid: Int[Array, ""],
    center: bool,
) -> Estimates:
    """Returns the estimates after more samples. `compiled_update` is this, compiled.

    **Arguments:**

    - `samples`: shape `(samples, p)`, a multiple of `BLOCK` of them.
    - `valid`: how many of the samples to use; those after them are padding.
    - `center`: whether to subtract the running mean.
    """
    blocks = samples.reshape(-1, BLOCK, samples.shape[1])

    def update_by_block(i: Array, estimates: Estimates) -> Estimates:
        valid_in_block = jnp.minimum(valid - i * BLOCK, BLOCK)
        return _update_block(rule, estimates, blocks[i], valid_in_block, center)

    return lax.fori_loop(0, (valid + BLOCK - 1) // BLOCK, update_by_block, estimates)


@functools.cache
def compiled_update(on_cpu: bool) -> Any:
    """Returns `update`, compiled.

    On a CPU without XLA's fusion emitters, if this XLA has that option: with them it takes
    longer to compile and to run.
    """
    options = supported({"xla_cpu_use_fusion_emitters": False}) if on_cpu else None
    return eqx.filter_jit(update, compiler_options=options)  # pyright: ignore


def _update_block(
    rule: AbstractAlgorithm,
    estimates: Estimates,
    samples: Float[Array, "block p"],
    valid: Int[Array, ""],
    center: bool,
) -> Estimates:
    """Returns the estimates after the first `valid` samples of a block.

    All vectors stay in the span of the old vectors and the samples. So the algorithm runs
    on coordinates in that basis: one matrix product gives the inner products of the basis,
    a loop computes the coordinates, and a second product the new vectors. Component `i` can
    use sample `j` when it has used `j - 1` and component `i - 1` has used `j`; so at stage
    `s` of the loop all components work at once, component `i` on sample `s - i`.
    """
    exact = lax.Precision.HIGHEST
    (size, p), components = samples.shape, len(estimates.vectors)
    count_before = jnp.minimum(estimates.count, _LARGEST_COUNT)
    least = least_weight(rule, estimates)
    entering = sample_weights(least, count_before, valid, size)
    weights = block_weights(entering, center)
    origin, differences = estimates.moments.mean.differences(samples, count_before, center)
    vectors = estimates.vectors
    if estimates.schedule_vectors is not None:
        vectors = jnp.concatenate([vectors, estimates.schedule_vectors])
    known = len(vectors)
    basis = jnp.concatenate([vectors, differences])
    gram = jnp.matmul(basis, basis.T, precision=exact)
    lengths = jnp.sqrt(jnp.diagonal(gram))
    coordinates = jnp.eye(len(basis), dtype=basis.dtype)
    if center:
        coordinates = coordinates.at[known:, known:].set(weights.centring)
        gram = jnp.matmul(coordinates, gram, precision=exact)
    # t = (index + 1)/p counts the samples before this one: the first sample starts a
    # component and is not a step. Centring uses up one more.
    count = count_before + valid
    before = count_before - int(center) - 1
    if isinstance(rule, AbstractSubspaceRule):
        rows = jnp.arange(size, dtype=jnp.int32)
        index = before + rows
        steps = take_subspace_steps(
            rule,
            p,
            SubspaceSteps(
                estimates.schedule,
                estimates.captured,
                jnp.zeros_like(gram[:components]),
                gram[:components],
                gram[:components, :components],
            ),
            Sample(
                coordinates[components:],
                gram[components:],
                index,
                _weight(index, basis.dtype),
                rows < valid,
            ),
            lengths,
        )
        schedule, captured, change = steps.state, steps.captured, steps.change
        new_vectors = None
    else:
        assert isinstance(rule, AbstractRule)
        schedule, captured, change, new_vectors = _step_by_component(
            rule, p, estimates, coordinates, gram, lengths, valid, before
        )
    vectors = estimates.vectors + jnp.matmul(change, basis, precision=exact)
    moments = estimates.moments.updated(weights, origin, differences, center)
    if new_vectors is not None:
        new_vectors = jnp.matmul(new_vectors, basis, precision=exact)
    return Estimates(vectors, schedule, captured, moments, count, new_vectors)


def _step_by_component(
    rule: AbstractRule,
    p: int,
    estimates: Estimates,
    coordinates: Float[Array, "basis basis"],
    gram: Float[Array, "basis basis"],
    lengths: Float[Array, " basis"],
    valid: Int[Array, ""],
    before: Int[Array, ""],
) -> tuple[
    ScheduleState,
    Float[Array, " components"],
    Float[Array, "components basis"],
    Float[Array, "components basis"] | None,
]:
    """Returns the states of the schedules and `captured` after a block, the change of the
    coordinates of the components in the basis, and the coordinates of the schedules'
    vectors, if they keep some.

    **Arguments:**

    - `coordinates`, `gram`: of the components before the block, of the schedules' vectors
        and of the samples: their coordinates in the basis, and their inner products with
        it.
    - `lengths`: the lengths of the vectors of the basis.
    - `valid`: how many of the samples to use.
    - `before`: the number of samples before the block, of those that are steps.
    """
    components = len(estimates.vectors)
    known = components + vectors_of(rule, components)
    size = len(gram) - known
    # A vector is a pair: its coordinates in the basis, and its inner products with it.
    pairs = jnp.stack([coordinates, gram], axis=1)

    def apply(step: _Step, vectors: Array, residuals: Array) -> Array:
        return jax.vmap(lambda n, v, y: n.update.apply(v, y))(step, vectors, residuals)

    def run_stage(carry, entering_and_stage):
        schedule, step, (vectors, residuals), own = carry
        entering, stage = entering_and_stage
        # The step that the last stage computed is applied here, because a number that a
        # loop carries is stored: within a stage XLA would compute it again for every entry
        # of the vectors.
        step = _Step(*step)
        if own is not None:
            own = own.moved(vectors, residuals)
        vectors = apply(step, vectors, residuals)
        residuals = residuals - step.projection[:, None, None] * vectors
        # Each residual moves on to the next component.
        residuals = jnp.concatenate([entering[None], residuals[:-1]])
        terms = [
            vectors[:, 0] * residuals[:, 1],
            vectors[:, 0] * vectors[:, 1],
            residuals[:, 0] * residuals[:, 1],
            jnp.abs(residuals[:, 0]) * lengths[None],
        ]
        sample = stage - jnp.arange(components, dtype=jnp.int32)
        is_valid = (sample >= 0) & (sample < valid)
        whole = lengths[known + jnp.clip(sample, 0, size - 1)]
        yx, lam2, yy, gross = jnp.sum(jnp.stack(terms), axis=2)
        products = _Products(yx, lam2, yy, gross, whole)
        index = before + sample
        both = None if own is None else own.products(vectors, residuals)
        schedule, step, factors = jax.vmap(
            _step_component, (None, None, 0, 0, 0, 0, 0, 0, 0)
        )(rule, p, schedule, step.captured, step.growth, products, index, is_valid, both)
        if own is not None and factors is not None:
            own = _OwnVectors(own.pairs, factors)
        # Two arrays and not ten: on a CPU each that a loop carries is a kernel and a copy.
        return (schedule, jnp.stack(step), jnp.stack([vectors, residuals]), own), None

    zero = jnp.zeros(components, gram.dtype)
    step = _Step(estimates.captured, zero, zero, zero, zero + 1, zero)
    vectors = pairs[:components]
    both = jnp.stack([vectors, jnp.zeros_like(vectors)])
    own = None
    if known > components:
        own = _OwnVectors(pairs[components:known], jnp.stack([zero] * 3, axis=1))
    carry = (estimates.schedule, jnp.stack(step), both, own)
    # One sample enters at each stage; zeros do while the last samples are still in use.
    entering = jnp.pad(pairs[known:], [(0, components - 1), (0, 0), (0, 0)])
    stages = jnp.arange(size + components - 1, dtype=jnp.int32)
    (schedule, step, (vectors, residuals), own), _ = lax.scan(
        run_stage, carry, (entering, stages), unroll=defaults.unroll(len(stages), 16)
    )
    step = _Step(*step)
    # A residual is a combination of the sample and the components before this one, never of
    # this one's own vector: so `growth` is the whole change of its own coordinate.
    begin = vectors, residuals
    change = apply(step, vectors, residuals)[:, 0]
    is_own = jnp.eye(*change.shape, dtype=bool)
    change = jnp.where(is_own, step.growth[:, None], change)
    if own is None:
        return schedule, step.captured, change, None
    return schedule, step.captured, change, own.moved(*begin).pairs[:, 0]


def _weight(index: Int[Array, "*n"], dtype: Any) -> Float[Array, "*n"]:
    """Returns the weight of a sample in `captured`."""
    return (1 + _AMNESIA) / (jnp.maximum(index, 0).astype(dtype) + 1 + _AMNESIA)


def _step_component(
    rule: AbstractRule,
    p: int,
    schedule: ScheduleState,
    captured: Real,
    growth: Real,
    products: _Products,
    index: Int[Array, ""],
    is_valid: Bool[Array, ""],
    own: tuple[Real, Real] | None,
) -> tuple[ScheduleState, _Step, Array | None]:
    """Returns the schedule's next state, the step of one component by one sample, and the
    factors of that of the schedule's vector.

    If the component is zero, the residual starts it, unless it is no larger than rounding
    errors. If the sample is padding, nothing changes.

    **Arguments:**

    - `own`: the products of the schedule's vector with the component and the residual.
    """
    dtype = captured.dtype
    # Rounding may make squares negative; the square of a zero vector is exactly 0.
    yy, lam2 = jnp.maximum(products.yy, 0), jnp.abs(products.lam2)
    begun = is_valid & (lam2 != 0)
    # A sample that lies in the span of the components before, or that has just started one
    # of them, leaves a residual of rounding errors only.
    eps = 100 * jnp.finfo(dtype).eps
    rounding = jnp.maximum(eps * products.gross**2, (eps * products.whole) ** 2)
    begins = is_valid & (lam2 == 0) & (yy > rounding)
    lam2, yx = jnp.where(begun, lam2, 1), jnp.where(begun, products.yx, 0)
    unknown = jnp.full_like(lam2, jnp.nan)
    scalars, factors = (unknown, index, lam2, yx, yy, unknown), None
    if own is None:
        taken, next_schedule = component_step(rule, p, *scalars, schedule)
    else:
        taken, factors, next_schedule = step_with_vector(rule, p, *scalars, *own, schedule)
        factors = jnp.where(begun, jnp.stack(factors), 0)
    update = taken.update
    weight = _weight(index, dtype)
    new_captured = captured + weight * (yx**2 / lam2 - captured)
    new_growth = growth + update.change(1 + growth, jnp.zeros_like(growth))
    coefficients = (update.keep_minus_1, update.coef, update.rescale)
    step = _Step(new_captured, new_growth, *coefficients, taken.share)

    # A component starts as the residual, with the length that the rule needs.
    one, zero = jnp.ones_like(yx), jnp.zeros_like(yx)
    scale = 1 / jnp.sqrt(jnp.where(begins, yy, 1)) if rule.projects else one * p**-0.5
    start = _Step(yy, growth, -one, scale, one, 1 / scale)
    idle = _Step(captured, growth, zero, zero, one, zero)
    step = jax.tree.map(
        lambda a, b, c: jnp.where(begun, a, jnp.where(begins, b, c)), step, start, idle
    )
    schedule = jax.tree.map(lambda a, b: jnp.where(begun, a, b), next_schedule, schedule)
    return schedule, step, factors
