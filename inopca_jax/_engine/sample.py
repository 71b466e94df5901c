"""The p-dimensional step: one sample, or a block of them at once."""

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
from .._timeline import select
from .._types import ScheduleState, TrialKey, Vector
from . import defaults
from .base import NOISE, SIGNAL
from .update import RankOneUpdate, Step, rank_one_update


class StreamState(eqx.Module):
    """The estimate, the spike and the schedule's state.

    `error` is the rounding error of `x` until now. A sample changes an entry by about
    tau/sqrt(p) of itself, of which tau/p is the mean: where that is below a unit in the
    last place of float32, it would be lost if the error were not carried along.
    """

    x: Vector
    error: Vector
    xi: Vector
    schedule: ScheduleState

    @staticmethod
    def begin(x: Vector, xi: Vector, schedule: ScheduleState) -> "StreamState":
        return StreamState(x, jnp.zeros_like(x), xi, schedule)

    def moved(self, change: Vector, schedule: ScheduleState) -> "StreamState":
        """Returns the state with `x` changed by `change`."""
        x, error = fast_two_sum(self.x, self.error + change)
        return StreamState(x, error, self.xi, schedule)


def draw_pairs(key: TrialKey, pairs: Array, p: int) -> tuple[tuple[Array, Array], ...]:
    """Returns `(c, a)` of the samples `2 pair`, and those of the samples `2 pair + 1`.

    A hash gives one word to each of the two, so that no halves have to be concatenated.
    """
    rows = pairs.astype(jnp.uint32)
    c0 = jnp.broadcast_to(jnp.arange(p, dtype=jnp.uint32), (rows.size, p))
    c1 = jnp.broadcast_to(rows[:, None], (rows.size, p))
    noise = normals(words_of(jr.fold_in(key, NOISE)), c0, c1)
    signal = normals(words_of(jr.fold_in(key, SIGNAL)), rows, jnp.zeros_like(rows))
    return tuple(zip(signal, noise, strict=True))


def sample_of(model: SpikedModel, xi: Vector, noise: tuple[Array, Array]) -> Vector:
    """Returns the sample `y` of `eq:data_model`, given `c` and `a`."""
    c, a = (part.astype(xi.dtype) for part in noise)
    return jnp.sqrt(model.omega / model.p) * c * xi + a


def one_sample(
    rule: AbstractRule, model: SpikedModel, state: StreamState, index: Step, y: Vector
) -> StreamState:
    """Returns the state after the sample `y`: the paper's update, literally."""
    p, x = model.p, state.x
    # Sums of products and not `dot`: on an accelerator a dot may round its inputs.
    xx, yx, yy = jnp.sum(x * x), jnp.sum(y * x), jnp.sum(y * y)
    u, root_p = jnp.sum(state.xi * x) / p, jnp.sqrt(p)
    update, schedule = rank_one_update(
        rule, p, model.omega, index, xx / p, yx / root_p, yy, u, state.schedule
    )
    return state.moved(update.change(x, root_p * y), schedule)


def one_block(
    rule: AbstractRule,
    model: SpikedModel,
    state: StreamState,
    ys: Float[Array, "block p"],
    rows: Int[Array, " block"],
    indices: Int[Array, " block"],
    wanted: Bool[Array, " block"],
) -> StreamState:
    """Returns the state after a block of samples.

    After j of them `x_j = (1 + growth) x + sum_i share_i y_i`, so the inner products of the
    next one follow from those of the block with itself and with `x`: two matrix products
    before, one after, and scalars in between.

    **Arguments:**

    - `ys`: the samples.
    - `rows`: their order: the i-th sample is `ys[rows[i]]`.
    - `indices`: how many samples came before each.
    - `wanted`: which of them to use.
    """
    p, x, xi = model.p, state.x, state.xi
    root_p = jnp.sqrt(p)
    exact = lax.Precision.HIGHEST
    # In units in which x/sqrt(p) is the vector, as `rank_one_update` has it.
    gram = jnp.matmul(ys, ys.T, precision=exact)
    products = jnp.matmul(ys, jnp.stack([x, xi], axis=1), precision=exact) / root_p

    def step(carry, sample):
        yxs, lam2, u, growth, shares, schedule = carry
        row, index, wanted = sample
        yx, yy = yxs[row], gram[row, row]
        update, moved = rank_one_update(
            rule, p, model.omega, index, lam2, yx, yy, u, schedule
        )
        identity = RankOneUpdate(*(jnp.full_like(lam2, value) for value in (0, 0, 1)))
        update, schedule = select(wanted, (update, moved), (identity, schedule))
        own = jnp.zeros_like(shares).at[row].set(1)
        return (
            update.apply(yxs, gram[row]),
            update.squared_norm(lam2, yx, yy),
            update.apply(u, products[row, 1]),
            growth + update.change(1 + growth, jnp.zeros_like(growth)),
            update.apply(shares, own),
            schedule,
        ), None

    begin = (
        products[:, 0],
        jnp.sum(x * x) / p,
        jnp.sum(xi * x) / p,
        jnp.zeros((), x.dtype),
        jnp.zeros(len(ys), x.dtype),
        state.schedule,
    )
    (_, _, _, growth, shares, schedule), _ = lax.scan(
        step, begin, (rows, indices, wanted), unroll=defaults.block_unroll(len(ys))
    )
    added = jnp.matmul(root_p * shares, ys, precision=exact)
    return state.moved(growth * x + added, schedule)


def scan_blocks(
    rule: AbstractRule,
    model: SpikedModel,
    draw: Callable[[Array], tuple[tuple[Array, Array], ...]],
    state: StreamState,
    k: Step,
    stop: Step,
    size: int,
) -> StreamState:
    """Returns the state after the steps `k, ..., stop - 1`, in blocks that begin at
    multiples of `size`."""
    # In the order in which they are drawn, the even samples come before the odd ones: the
    # loop over scalars takes them in the order of time, which is cheaper than moving rows.
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
