"""The p-dimensional step: one sample, or a block of them at once."""

from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from .._model import SpikedModel
from .._noise import normals, threefry, uniform, words_of
from .._numerics import fast_two_sum
from .._rule import AbstractAlgorithm, AbstractPenalty, AbstractRule, split_penalty
from .._timeline import select
from .._types import Real, ScheduleState, TrialKey, Vector
from . import defaults
from .base import MASK, NOISE, SIGNAL, TURN
from .deflation import Targets, component_step
from .draws import SampleNoise, sample_of
from .subspace_step import linear_update
from .update import RankOneUpdate, Step
from .vector_step import step_with_vector


class StreamState(eqx.Module):
    """The estimates of all components, the spikes and the states of the schedules.

    `vectors` are those that the schedules keep, if they do, one for each component.

    `errors` are the rounding errors of `xs` until now. A sample changes an entry by about
    tau/sqrt(p) of itself, of which tau/p is the mean: where that is below a unit in the
    last place of float32, it would be lost if the error were not carried along.
    """

    xs: tuple[Vector, ...]
    errors: tuple[Vector, ...]
    xis: tuple[Vector, ...]
    schedules: tuple[ScheduleState, ...]
    vectors: tuple[Vector, ...] = ()

    @staticmethod
    def begin(
        xs: tuple[Vector, ...],
        xis: tuple[Vector, ...],
        schedules: tuple[ScheduleState, ...],
        vectors: int = 0,
    ) -> "StreamState":
        zeros = tuple(map(jnp.zeros_like, xs))
        return StreamState(xs, zeros, xis, schedules, zeros[:vectors])

    def moved(
        self,
        changes: Sequence[Vector],
        schedules: tuple[ScheduleState, ...],
        vectors: tuple[Vector, ...] = (),
    ) -> "StreamState":
        """Returns the state with every estimate changed."""
        sums = [
            fast_two_sum(x, error + change)
            for x, error, change in zip(self.xs, self.errors, changes, strict=True)
        ]
        xs, errors = zip(*sums, strict=True)
        return StreamState(xs, errors, self.xis, schedules, vectors)

    def observe(self) -> tuple[list[list[Real]], list[list[Real]]]:
        """Returns the products of the spikes with the components, and of these with each
        other, over p."""
        p = self.xs[0].size
        along = [[jnp.sum(xi * x) / p for x in self.xs] for xi in self.xis]
        return along, [[jnp.sum(a * b) / p for a in self.xs] for b in self.xs]


def draw_pairs(
    key: TrialKey,
    pairs: Array,
    p: int,
    spikes: int = 1,
    observed: Real | None = None,
    turns: bool = False,
) -> tuple[SampleNoise, SampleNoise]:
    """Returns the noise of the samples `2 pair`, and that of the samples `2 pair + 1`.

    A hash gives one word to each of the two, so that no halves have to be concatenated.

    **Arguments:**

    - `key`, `pairs`: the trial's key, and the numbers of the pairs of samples.
    - `p`, `spikes`: the dimension and the number of spikes.
    - `observed`: the probability that an entry is seen; `None` for complete samples.
    - `turns`: whether the spikes turn.
    """
    rows = pairs.astype(jnp.uint32)
    c0 = jnp.broadcast_to(jnp.arange(p, dtype=jnp.uint32), (rows.size, p))
    c1 = jnp.broadcast_to(rows[:, None], (rows.size, p))
    noise = normals(words_of(jr.fold_in(key, NOISE)), c0, c1)
    words = words_of(jr.fold_in(key, SIGNAL))
    signals = [normals(words, rows, jnp.full_like(rows, j)) for j in range(spikes)]
    halves = zip(zip(*signals, strict=True), noise, strict=True)
    first, second = (SampleNoise(cs, a) for cs, a in halves)
    if observed is not None:
        bits = threefry(words_of(jr.fold_in(key, MASK)), c0, c1)
        first, second = (
            half._replace(seen=uniform(word) < observed.astype(jnp.float32))
            for half, word in zip((first, second), bits, strict=True)
        )
    if turns:
        keys = [jr.fold_in(jr.fold_in(key, TURN), j) for j in range(spikes)]
        vectors = zip(*(normals(words_of(k), c0, c1) for k in keys), strict=True)
        first, second = (
            half._replace(turns=zs)
            for half, zs in zip((first, second), vectors, strict=True)
        )
    return first, second


def one_sample(
    rule: AbstractAlgorithm,
    model: SpikedModel,
    targets: Targets,
    state: StreamState,
    index: Step,
    y: Vector,
) -> StreamState:
    """Returns the state after the sample `y`: the paper's update of every component, with
    deflation in between, literally; or the step of a rule that acts on all of them."""
    rule, penalty = split_penalty(rule)
    p, root_p = model.p, jnp.sqrt(model.p)
    if not isinstance(rule, AbstractRule):
        along, gram = state.observe()
        products = [jnp.sum(y * x) / root_p for x in state.xs]
        update, schedules = linear_update(
            rule, p, targets, index, gram, products, jnp.sum(y * y), along, state.schedules
        )
        return state.moved(update.change(state.xs, root_p * y), schedules)
    us = targets.products([[jnp.sum(xi * x) / p for x in state.xs] for xi in state.xis])
    changes, schedules, vectors = [], [], []
    for i, (x, u) in enumerate(zip(state.xs, us, strict=True)):
        # Sums of products and not `dot`: on an accelerator a dot may round its inputs.
        xx, yx, yy = jnp.sum(x * x), jnp.sum(y * x), jnp.sum(y * y)
        scalars = (targets.omegas[i], index, xx / p, yx / root_p, yy, u)
        if state.vectors:
            g = state.vectors[i]
            gx, gy = jnp.sum(g * x) / root_p, jnp.sum(g * y)
            step, factors, schedule = step_with_vector(
                rule, p, *scalars, gx, gy, state.schedules[i]
            )
            keep, along, pull = factors
            vectors.append(g + (keep * g + along / root_p * x + pull * y))
        else:
            step, schedule = component_step(rule, p, *scalars, state.schedules[i])
        share = step.share / root_p
        if penalty is None:
            changes.append(step.update.change(x, root_p * y))
        else:
            changes.append(_penalised_change(step.update, rule, penalty, x, root_p * y))
            new = x + changes[i]
            share = jnp.sum(y * new) / jnp.sum(new * new)
        schedules.append(schedule)
        if i < len(us) - 1:
            y = y - share * (x + changes[i])
    return state.moved(changes, tuple(schedules), tuple(vectors))


def _penalised_change(
    update: RankOneUpdate,
    rule: AbstractRule,
    penalty: AbstractPenalty,
    x: Vector,
    y: Vector,
) -> Vector:
    """Returns the change of the estimate by a rule's step, the penalty on its entries, and
    the projection, if the rule projects, in this order."""
    step = RankOneUpdate(update.keep_minus_1, update.coef, jnp.ones_like(update.coef))
    change = step.change(x, y)
    change = change - penalty.phi(x + change) / x.size
    if not rule.projects:
        return change
    new = x + change
    rescale = 1 / jnp.sqrt(jnp.sum(new * new) / x.size)
    return (rescale - 1) * x + rescale * change


def one_block(
    rule: AbstractAlgorithm,
    model: SpikedModel,
    targets: Targets,
    state: StreamState,
    ys: Float[Array, "block p"],
    rows: Int[Array, " block"],
    indices: Int[Array, " block"],
    wanted: Bool[Array, " block"],
) -> StreamState:
    """Returns the state after a block of samples.

    After j of them the components are `V (I + mix) + sum_i y_i shares_i^T`, so the inner
    products of the next one follow from those of the block with itself, with the estimates
    and with the spikes: two matrix products before, one after, and scalars in between.

    **Arguments:**

    - `ys`: the samples.
    - `rows`: their order: the i-th sample is `ys[rows[i]]`.
    - `indices`: how many samples came before each.
    - `wanted`: which of them to use.
    """
    p, components = model.p, len(state.xs)
    root_p = jnp.sqrt(p)
    exact = lax.Precision.HIGHEST
    # In units in which x/sqrt(p) is the vector, as `component_step` has it.
    samples = jnp.matmul(ys, ys.T, precision=exact)
    vectors = jnp.stack([*state.xs, *state.xis], axis=1)
    products = jnp.matmul(ys, vectors, precision=exact) / root_p
    along, gram = state.observe()
    zero = jnp.zeros_like(gram[0][0])

    def step(carry, sample):
        yvs, gram, along, mix, shares, schedules = carry
        row, index, wanted = sample
        yv, yy = [yvs[i][row] for i in range(components)], samples[row, row]
        update, moved = linear_update(
            rule, p, targets, index, gram, yv, yy, along, schedules
        )
        own = jnp.zeros_like(shares[0]).at[row].set(1)
        # The rows of I + mix, of which only the difference from I is kept.
        units = [
            [zero + float(i == j) for j in range(components)] for i in range(components)
        ]
        sums = [
            [a + b for a, b in zip(*pair, strict=True)]
            for pair in zip(units, mix, strict=True)
        ]
        new = (
            update.apply(yvs, samples[row]),
            update.gram(gram, yv, yy),
            [
                update.apply(values, products[row, components + j])
                for j, values in enumerate(along)
            ],
            [
                [
                    m + change
                    for m, change in zip(values, update.change(total, zero), strict=True)
                ]
                for values, total in zip(mix, sums, strict=True)
            ],
            update.apply(shares, own),
            moved,
        )
        return select(wanted, new, carry), None

    begin = (
        [products[:, i] for i in range(components)],
        gram,
        along,
        [[zero] * components for _ in range(components)],
        [jnp.zeros(len(ys), zero.dtype)] * components,
        state.schedules,
    )
    (_, _, _, mix, shares, schedules), _ = lax.scan(
        step, begin, (rows, indices, wanted), unroll=defaults.unroll(len(ys), 64)
    )
    added = jnp.matmul(root_p * jnp.stack(shares), ys, precision=exact)
    changes = []
    for i, column in enumerate(zip(*mix, strict=True)):
        change = added[i]
        for m, x in zip(column, state.xs, strict=True):
            change = change + m * x
        changes.append(change)
    return state.moved(changes, schedules)


def scan_blocks(
    rule: AbstractAlgorithm,
    model: SpikedModel,
    targets: Targets,
    draw: Callable[[Array], tuple[SampleNoise, SampleNoise]],
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
        sample = jax.vmap(lambda noise: sample_of(model, state.xis, noise))
        ys = jnp.concatenate([sample(half) for half in draw(pairs)])
        indices = block * size + jnp.arange(size, dtype=block.dtype)
        wanted = (k <= indices) & (indices < stop)
        return block + 1, one_block(rule, model, targets, state, ys, rows, indices, wanted)

    return lax.while_loop(lambda carry: carry[0] * size < stop, one, (k // size, state))[1]
