"""A block of samples taken by several components: `alg:INO-PCA_multiple_pc`."""

import functools
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int, PyTree

from .._engine.base import Weights, weights
from .._numerics import fast_two_sum
from .._rule import AbstractRule, InoPCA
from .._types import Memory, Real, Vector
from .._xla import supported

BLOCK = 64
"""How many samples go into one pair of matrix products. It is part of the result's bits."""

_AMNESIA = 2.0
# Where the clock of a long stream stands still: one block more is all that 32 bits count.
_LAST = 2**31 - 1 - BLOCK


class Learned(eqx.Module):
    """The components after some samples.

    `vectors` are the algorithm's over `sqrt(p)`, so that their lengths are the norms that
    rules see; one that no sample has begun is zero. `captured` is a running mean of what
    each captures of a sample's square, that counts late samples for more. `lost` is what
    `mean` lacks by rounding: a late block moves the mean by less than its last digit.
    """

    vectors: Float[Array, "components p"]
    memory: PyTree[Float[Array, "components ..."]]
    captured: Float[Array, " components"]
    mean: Vector
    lost: Vector
    count: Int[Array, ""]

    @property
    def components(self) -> Float[Array, "components p"]:
        """An orthonormal basis of the span of the first vectors, for any number of them.

        Samples are made orthogonal to a vector before the next one sees them, so the
        vectors are nearly that already. One that has not begun, or that the ones before
        it leave nothing of, is zero.
        """
        basis, rest = jnp.linalg.qr(self.vectors.T)
        rest = jnp.diagonal(rest)
        lengths = jnp.sqrt(jnp.sum(self.vectors**2, axis=1))
        new = jnp.abs(rest) > jnp.finfo(rest.dtype).eps ** (1 / 3) * lengths
        sign = jnp.where(new, jnp.where(rest < 0, -1, 1), 0).astype(rest.dtype)
        return sign[:, None] * basis.T

    def eigenvalues(self, rule: AbstractRule) -> Float[Array, " components"]:
        """INO-PCA's norms settle at the eigenvalues; of others, what they capture."""
        if isinstance(rule, InoPCA):
            return jnp.sqrt(jnp.sum(self.vectors**2, axis=1))
        return self.captured


class _Products(NamedTuple):
    """Of a component with what is left of its sample, and of each with itself; the sum of
    the lengths of which the latter is what is left, and the length of the sample."""

    pull: Array
    lam2: Array
    yy: Array
    gross: Array
    whole: Array


class _Numbers(NamedTuple):
    """What a component captures on average, its weight in itself since the block began,
    less 1, and the step that it takes: `Weights`, and how many times itself it takes away
    from the sample.

    Less 1, because a step changes the weight by about tau/p. From a number near 1 rounding
    would take that away, or a part of it, at every step in the same way.
    """

    captured: Array
    growth: Array
    shrink: Array
    gain: Array
    norm: Array
    along: Array

    @property
    def took(self) -> Weights:
        return Weights(self.shrink, self.gain, self.norm)


def nothing_learned(rule: AbstractRule, components: int, p: int, dtype) -> Learned:
    memory = jax.tree.map(
        lambda m: jnp.broadcast_to(m.astype(dtype), (components, *m.shape)),
        rule.tau.init(p),
    )
    zeros = lambda *shape: jnp.zeros(shape, dtype)
    count = jnp.zeros((), jnp.int32)
    vectors, captured = zeros(components, p), zeros(components)
    return Learned(vectors, memory, captured, zeros(p), zeros(p), count)


def take(
    rule: AbstractRule,
    learned: Learned,
    samples: Float[Array, "samples p"],
    wanted: Int[Array, ""],
    center: bool,
) -> Learned:
    """The components after the first `wanted` of the samples, that come in blocks. Not yet
    compiled: `compiled_take` is."""
    blocks = samples.reshape(-1, BLOCK, samples.shape[1])

    def one(i: Array, learned: Learned) -> Learned:
        inside = jnp.minimum(wanted - i * BLOCK, BLOCK)
        return _take_block(rule, learned, blocks[i], inside, center)

    return lax.fori_loop(0, (wanted + BLOCK - 1) // BLOCK, one, learned)


@functools.cache
def compiled_take(on_cpu: bool) -> Any:
    """`take`, compiled. On a CPU without XLA's fusion emitters, where they can be turned
    off: with them it takes longer to compile, and to run."""
    options = supported({"xla_cpu_use_fusion_emitters": False}) if on_cpu else None
    return eqx.filter_jit(take, compiler_options=options)  # pyright: ignore


def _take_block(
    rule: AbstractRule,
    learned: Learned,
    samples: Float[Array, "block p"],
    wanted: Int[Array, ""],
    center: bool,
) -> Learned:
    """The components after the first `wanted` samples of a block.

    All vectors stay in the span of the old ones and of the samples, so it is enough to
    know the products of those with each other: one matrix product before, one after, and
    between them a loop over vectors as short as that basis. Component `i` takes sample
    `j` when it has taken `j - 1` and component `i - 1` is done with `j`; so at turn `s`
    all components work at once, each at the sample `s - i`.
    """
    exact = lax.Precision.HIGHEST
    (size, p), components = samples.shape, len(learned.vectors)
    rows = jnp.arange(size, dtype=jnp.int32)
    already = jnp.minimum(learned.count, _LAST)
    # Before the first sample any origin is as good as another, and a sample keeps a large
    # offset out of the rounding.
    first = samples[0] if center else learned.mean
    origin = jnp.where(already == 0, first, learned.mean)
    away = (samples - origin[None]) - learned.lost[None]
    basis = jnp.concatenate([learned.vectors, away])
    products = jnp.matmul(basis, basis.T, precision=exact)
    lengths = jnp.sqrt(jnp.diagonal(products))
    # A vector, as the weights of the basis in it and as its products with the basis.
    weights_in = jnp.eye(len(basis), dtype=basis.dtype)
    if center:
        centring = _centring(already + rows, basis.dtype)
        weights_in = weights_in.at[components:, components:].set(centring)
        products = jnp.matmul(weights_in, products, precision=exact)
    vectors = jnp.stack([weights_in, products], axis=1)

    def moved(numbers: _Numbers, own: Array, left: Array) -> Array:
        return jax.vmap(lambda n, v, y: n.took.step(v, y))(numbers, own, left)

    def turn(carry, now):
        memory, numbers, (own, left) = carry
        entering, s = now
        # The last turn's step. A number that a loop carries is stored; within a turn XLA
        # would compute it again for every entry of the vectors.
        numbers = _Numbers(*numbers)
        own = moved(numbers, own, left)
        left = _shifted(entering, left - numbers.along[:, None, None] * own)
        terms = [
            own[:, 0] * left[:, 1],
            own[:, 0] * own[:, 1],
            left[:, 0] * left[:, 1],
            jnp.abs(left[:, 0]) * lengths[None],
        ]
        sample = s - jnp.arange(components, dtype=jnp.int32)
        taking = (sample >= 0) & (sample < wanted)
        whole = lengths[components + jnp.clip(sample, 0, size - 1)]
        pull, lam2, yy, gross = jnp.sum(jnp.stack(terms), axis=2)
        seen = _Products(pull, lam2, yy, gross, whole)
        # The clock stands at the number of samples before: the first begins a component
        # and is no step. Centring uses up one more.
        index = already + sample - int(center) - 1
        memory, numbers = jax.vmap(_decide, (None, None, 0, 0, 0, 0, 0, 0))(
            rule, p, memory, numbers.captured, numbers.growth, seen, index, taking
        )
        # Two arrays and not ten: on a CPU each that a loop carries is a kernel and a copy.
        return (memory, jnp.stack(numbers), jnp.stack([own, left])), None

    def entering(rows: Array) -> Array:
        """One sample a turn, and none once all are under way."""
        after = [(0, components - 1)] + [(0, 0)] * (rows.ndim - 1)
        return jnp.pad(rows[components:], after)

    zero = jnp.zeros(components, basis.dtype)
    numbers = _Numbers(learned.captured, zero, zero, zero, zero + 1, zero)
    own = vectors[:components]
    carry = (learned.memory, jnp.stack(numbers), jnp.stack([own, jnp.zeros_like(own)]))
    turn_numbers = jnp.arange(size + components - 1, dtype=jnp.int32)
    turns = (entering(vectors), turn_numbers)
    (memory, numbers, (own, left)), _ = lax.scan(turn, carry, turns)
    numbers = _Numbers(*numbers)
    count = already + wanted
    share = (rows < wanted).astype(basis.dtype) / count.astype(basis.dtype)
    # What a component takes of a sample is made of the sample and of the components before
    # this one, never of its own vector: so `growth` has the whole of its weight in itself.
    change = moved(numbers, own, left)[:, 0]
    itself = jnp.eye(*change.shape, dtype=bool)
    change = jnp.where(itself, numbers.growth[:, None], change)
    # The mean goes along: one row more of a product.
    out = jnp.vstack([change, jnp.pad(share, (components, 0))])
    out = jnp.matmul(out, basis, precision=exact)
    mean, lost = learned.mean, learned.lost
    if center:
        mean, lost = fast_two_sum(origin, lost + out[-1])
    vectors = learned.vectors + out[:-1]
    return Learned(vectors, memory, numbers.captured, mean, lost, count)


def _shifted(entering: Array, rows: Array) -> Array:
    """Each row to the next component."""
    return jnp.concatenate([entering[None], rows[:-1]])


def _centring(before: Int[Array, " block"], dtype: Any) -> Float[Array, "block block"]:
    """Samples become `sqrt((n-1)/n)` times their differences from the mean of the `n - 1`
    before; these are counted from any one origin, their mean's until now.

    So scaled, the squares of the differences add up to those from the mean of all, at
    every n: the stream has the covariance of the data and no start-up bias.
    """
    size, before = len(before), before.astype(dtype)
    earlier = jnp.tri(size, k=-1, dtype=dtype) / jnp.maximum(before, 1)[:, None]
    differences = jnp.eye(size, dtype=dtype) - earlier
    return jnp.sqrt(before / (before + 1))[:, None] * differences


def _decide(
    rule: AbstractRule,
    p: int,
    memory: Memory,
    captured: Real,
    growth: Real,
    seen: _Products,
    index: Int[Array, ""],
    taking: Bool[Array, ""],
) -> tuple[Memory, _Numbers]:
    """What one component does with what is left of one sample."""
    dtype = captured.dtype
    # Squares, that rounding must not make negative; that of nothing is 0 exactly.
    yy, lam2 = jnp.maximum(seen.yy, 0), jnp.abs(seen.lam2)
    begun = taking & (lam2 != 0)
    # Nor may it begin a component: what is left of a sample that was seen before, or that
    # has just begun another, is rounding.
    eps = 100 * jnp.finfo(dtype).eps
    rounding = jnp.maximum(eps * seen.gross**2, (eps * seen.whole) ** 2)
    begins = taking & (lam2 == 0) & (yy > rounding)
    lam2, pull = jnp.where(begun, lam2, 1), jnp.where(begun, seen.pull, 0)
    unknown = jnp.full_like(lam2, jnp.nan)
    took, stepped = weights(rule, p, unknown, index, lam2, pull, yy, unknown, memory)
    after2 = took.length2(lam2, pull, yy)
    along = took.step(pull, yy) / jnp.where(after2 > 0, after2, 1)
    weight = (1 + _AMNESIA) / (jnp.maximum(index, 0).astype(dtype) + 1 + _AMNESIA)
    more = captured + weight * (pull**2 / lam2 - captured)
    grown = growth + took.change(1 + growth, jnp.zeros_like(growth))
    step = _Numbers(more, grown, took.shrink, took.gain, took.norm, along)

    # A start takes the residual for the vector, of the length that the rule wants.
    one, zero = jnp.ones_like(pull), jnp.zeros_like(pull)
    start = 1 / jnp.sqrt(jnp.where(begins, yy, 1)) if rule.projects else one * p**-0.5
    start = _Numbers(yy, growth, one, start, one, 1 / start)
    idle = _Numbers(captured, growth, zero, zero, one, zero)
    numbers = jax.tree.map(
        lambda a, b, c: jnp.where(begun, a, jnp.where(begins, b, c)), step, start, idle
    )
    return jax.tree.map(lambda a, b: jnp.where(begun, a, b), stepped, memory), numbers
