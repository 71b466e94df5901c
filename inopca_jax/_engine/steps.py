"""The p-dimensional step: one sample, or a block of them."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from .._model import SpikedModel
from .._noise import normals, words_of
from .._numerics import fast_two_sum
from .._rule import AbstractRule
from .._types import Memory, TrialKey, Vector
from . import defaults
from .base import NOISE, SIGNAL, Step, Weights, weights


class StreamState(eqx.Module):
    """The estimate, the spike and the schedule's memory.

    `rest` is what the rounding of `x` has left out until now. A sample changes an entry by
    about tau/sqrt(p) of itself, of which tau/p is its mean: where that is below a unit of
    float32's last place, it would be lost but for the rest.
    """

    x: Vector
    rest: Vector
    xi: Vector
    memory: Memory

    @staticmethod
    def begin(x: Vector, xi: Vector, memory: Memory) -> "StreamState":
        return StreamState(x, jnp.zeros_like(x), xi, memory)

    def moved(self, change: Vector, memory: Memory) -> "StreamState":
        x, rest = fast_two_sum(self.x, self.rest + change)
        return StreamState(x, rest, self.xi, memory)


def draw_pairs(key: TrialKey, pairs: Array, p: int) -> tuple[tuple[Array, Array], ...]:
    """`(c, a)` of the samples `2 pair` and `2 pair + 1`: a hash gives one word to each,
    which needs no concatenation of the halves."""
    rows = pairs.astype(jnp.uint32)
    c0 = jnp.broadcast_to(jnp.arange(p, dtype=jnp.uint32), (rows.size, p))
    c1 = jnp.broadcast_to(rows[:, None], (rows.size, p))
    noise = normals(words_of(jr.fold_in(key, NOISE)), c0, c1)
    signal = normals(words_of(jr.fold_in(key, SIGNAL)), rows, jnp.zeros_like(rows))
    return tuple(zip(signal, noise, strict=True))


def sample_of(model: SpikedModel, xi: Vector, noise: tuple[Array, Array]) -> Vector:
    """`eq:data_model`."""
    c, a = (part.astype(xi.dtype) for part in noise)
    return jnp.sqrt(model.omega / model.float_p) * c * xi + a


def one_sample(
    rule: AbstractRule, model: SpikedModel, state: StreamState, index: Step, y: Vector
) -> StreamState:
    """The paper's update, literally."""
    p, x = model.float_p, state.x
    # Sums of products and not `dot`: on an accelerator a dot may round its inputs.
    xx, yx, yy = jnp.sum(x * x), jnp.sum(y * x), jnp.sum(y * y)
    u = jnp.sum(state.xi * x) / p
    lam2, pull = xx / p, yx / p**0.5
    took, memory = weights(rule, p, model.omega, index, lam2, pull, yy, u, state.memory)
    return state.moved(took.change(x, p**0.5 * y), memory)


def one_block(
    rule: AbstractRule,
    model: SpikedModel,
    state: StreamState,
    ys: Float[Array, "block p"],
    rows: Int[Array, " block"],
    indices: Int[Array, " block"],
    wanted: Bool[Array, " block"],
) -> StreamState:
    """The updates by `ys[rows]`, those that are `wanted`; `indices` are their steps.

    After j of them `x_j = (1 + growth) x + sum_i share_i y_i`, so the next one's inner
    products follow from those of the block with itself and with `x`: two matrix products
    before, one after, and in between scalars.
    """
    p, x, xi = model.float_p, state.x, state.xi
    exact = lax.Precision.HIGHEST
    # In units in which x/sqrt(p) is the vector, as `weights` has it.
    gram = jnp.matmul(ys, ys.T, precision=exact)
    products = jnp.matmul(ys, jnp.stack([x, xi], axis=1), precision=exact) / p**0.5

    def step(carry, turn):
        pulls, lam2, u, growth, shares, memory = carry
        row, index, wanted = turn
        pull, yy = pulls[row], gram[row, row]
        took, moved = weights(rule, p, model.omega, index, lam2, pull, yy, u, memory)
        idle = Weights(*(jnp.full_like(lam2, value) for value in (0, 0, 1)))
        took, memory = jax.tree.map(
            lambda new, old: jnp.where(wanted, new, old), (took, moved), (idle, memory)
        )
        own = jnp.zeros_like(shares).at[row].set(1)
        return (
            took.step(pulls, gram[row]),
            took.length2(lam2, pull, yy),
            took.step(u, products[row, 1]),
            growth + took.change(1 + growth, jnp.zeros_like(growth)),
            took.step(shares, own),
            memory,
        ), None

    begin = (
        products[:, 0],
        jnp.sum(x * x) / p,
        jnp.sum(xi * x) / p,
        jnp.zeros((), x.dtype),
        jnp.zeros(len(ys), x.dtype),
        state.memory,
    )
    (_, _, _, growth, shares, memory), _ = lax.scan(
        step, begin, (rows, indices, wanted), unroll=defaults.block_unroll(len(ys))
    )
    added = jnp.matmul(p**0.5 * shares, ys, precision=exact)
    return state.moved(growth * x + added, memory)


def walk_blocks(
    rule: AbstractRule,
    model: SpikedModel,
    draw: Callable[[Array], tuple[tuple[Array, Array], ...]],
    state: StreamState,
    k: Step,
    stop: Step,
    size: int,
) -> StreamState:
    """Takes the steps `k, ..., stop - 1` in blocks that begin at multiples of `size`."""
    # Rows as they are drawn, the even samples and then the odd ones: the loop over
    # scalars takes them in the order of time, which is cheaper than moving the rows.
    rows = jnp.asarray(np.arange(size).reshape(2, size // 2).T.ravel())

    def one(carry):
        block, state = carry
        pairs = block * (size // 2) + jnp.arange(size // 2, dtype=block.dtype)
        sample = jax.vmap(lambda *noise: sample_of(model, state.xi, noise))
        ys = jnp.concatenate([sample(*half) for half in draw(pairs)])
        indices = block * size + jnp.arange(size, dtype=block.dtype)
        wanted = (k <= indices) & (indices < stop)
        return block + 1, one_block(rule, model, state, ys, rows, indices, wanted)

    return lax.while_loop(lambda carry: carry[0] * size < stop, one, (k // size, state))[1]
