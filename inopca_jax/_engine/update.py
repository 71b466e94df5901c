"""One step of any rule as a rank-one update, and the loop over steps."""

from collections.abc import Callable
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Int32, PyTree

from .._observables import Observables, VectorProducts
from .._rule import AbstractRule, rates_and_next_state
from .._schedule import AbstractVectorSchedule
from .._types import Real, Scalar, ScheduleState
from . import defaults

Step = Int32[Array, ""]
"""A number of samples (of `Diffusion`: of ticks of its clock)."""


class RankOneUpdate(eqx.Module):
    """The update `x' = rescale ((1 + keep_minus_1) x + sqrt(p) coef y)` of the estimate.

    **Arguments:**

    - `keep_minus_1`: minus the decay over p, `-h/p`.
    - `coef`: the gain times the product with the sample, `nu (y.x)/(p sqrt(p))`.
    - `rescale`: 1, or for a rule that projects what brings the norm back to 1.
    """

    keep_minus_1: Real
    coef: Real
    rescale: Real

    def change(self, x: Array, y: Array) -> Array:
        """Returns by how much a linear function of `x/sqrt(p)` changes.

        The factor of `x` is formed without `1 + keep_minus_1`. In single precision that is
        rounded by up to 3e-8, the same way at every step, which adds up where
        `keep_minus_1`, of order 1/p, is small.

        **Arguments:**

        - `x`: the function at `x/sqrt(p)`: a coordinate, an inner product or the vector.
        - `y`: the same function at `y`.
        """
        growth = (self.rescale - 1) + self.rescale * self.keep_minus_1
        return self.rescale * self.coef * y + growth * x

    def apply(self, x: Array, y: Array) -> Array:
        """Returns the new value of such a linear function."""
        return x + self.change(x, y)

    def squared_norm(self, lam2: Real, yx: Real, yy: Real) -> Real:
        """Returns `|x'|^2/p` from the products that `rank_one_update` takes."""
        growth = self.coef * (2 * (1 + self.keep_minus_1) * yx + self.coef * yy)
        growth = growth + self.keep_minus_1 * (2 + self.keep_minus_1) * lam2
        return self.rescale**2 * (lam2 + growth)


def observables_of(
    p: Scalar,
    index: Step,
    lam2: Real,
    yx: Real,
    yy: Real,
    vector: VectorProducts | None = None,
) -> Observables:
    """Returns what a rule may read at a sample, from what `rank_one_update` takes."""
    lam = jnp.sqrt(lam2)
    return Observables(
        lam=lam,
        s2=yx**2 / lam2,
        r=yy / p,
        t=(index + 1).astype(lam.dtype) / p,
        p=jnp.asarray(p, lam.dtype),
        vector=vector,
    )


def rank_one_update(
    rule: AbstractRule,
    p: Scalar,
    omega: Real,
    index: Step,
    lam2: Real,
    yx: Real,
    yy: Real,
    u: Real,
    state: ScheduleState,
    vector: VectorProducts | None = None,
) -> tuple[RankOneUpdate, ScheduleState]:
    """Returns the update that a rule makes at one sample, and its schedule's next state.

    **Arguments:**

    - `rule`: the rule.
    - `p`: the dimension.
    - `omega`: the signal-to-noise ratio, which only an oracle reads.
    - `index`: the number of samples before this one.
    - `lam2`, `yx`, `yy`: the inner products `|x|^2/p`, `y.x/sqrt(p)` and `|y|^2`.
    - `u`: the product with the spike, `x.xi/p`, which only an oracle reads.
    - `state`: the schedule's state.
    - `vector`: the products of the schedule's own vector, if it keeps one.
    """
    lam = jnp.sqrt(lam2)
    observables = observables_of(p, index, lam2, yx, yy, vector)
    rates, state = rates_and_next_state(rule, observables, u / lam, omega, state)
    decay = rates.decay
    if isinstance(rule.tau, AbstractVectorSchedule):
        # It names a gain, of which no bound is known beforehand.
        decay = jnp.minimum(decay, p / 2)
    keep_minus_1, coef = -(decay / p), rates.gain * yx / p
    update = RankOneUpdate(keep_minus_1, coef, jnp.ones_like(lam))
    if rule.projects:
        rescale = 1 / jnp.sqrt(update.squared_norm(lam2, yx, yy))
        update = RankOneUpdate(keep_minus_1, coef, rescale)
    return update, state


def scan_steps(
    draw: Callable[[Array], tuple[PyTree, ...]],
    step: Callable[[PyTree, Step, PyTree], PyTree],
    state: PyTree,
    k: Step,
    stop: Step,
    chunk: int,
    share: int = 1,
) -> PyTree:
    """Returns the state after the steps `k, ..., stop - 1`.

    The noise of `chunk` steps is drawn at a time. Steps outside of the range are computed
    and not used, so that neither `k` nor `stop` is compiled into the program.

    **Arguments:**

    - `draw`: maps an array of block numbers to `share` pytrees, the noise of the steps
      `share * block + i`, all from one hash.
    - `step`: maps the state, the number of the step and its noise to the next state.
    - `state`, `k`: the state after `k` steps.
    - `stop`: how many steps have been taken at the end.
    - `chunk`: how many steps' noise is drawn at a time, a multiple of `share`.
    - `share`: how many steps a block has.
    """

    def one_block(state: PyTree, block_and_noise) -> tuple[PyTree, None]:
        block, noises = block_and_noise
        for i, noise in enumerate(noises):
            index = block * share + i
            wanted = (k <= index) & (index < stop)
            new = step(state, index, noise)
            state = jax.tree.map(partial(jnp.where, wanted), new, state)
        return state, None

    def one_chunk(carry):
        block, state = carry
        blocks = block + jnp.arange(chunk // share, dtype=block.dtype)
        unroll = defaults.unroll(blocks.size, 32)
        state, _ = lax.scan(one_block, state, (blocks, draw(blocks)), unroll=unroll)
        return block + chunk // share, state

    def is_unfinished(carry):
        return carry[0] * share < stop

    return lax.while_loop(is_unfinished, one_chunk, (k // share, state))[1]
