"""What an engine is: one trial's begin, advance, observe and change."""

import abc
from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jax import lax
from jaxtyping import Array, Int32, PyTree

from .._config import Config
from .._model import SpikedModel
from .._observables import Sample
from .._pickling import Pickled
from .._rule import AbstractRule, learn
from .._start import AbstractStart
from .._types import Memory, Real, TrialKey, Vector

Step = Int32[Array, ""]

# What a trial's key is folded with, so that no two uses share a number.
SPIKE, START, NOISE, SIGNAL, SNAPSHOT, CHANGE = range(6)


class AbstractEngine(Pickled):
    """A way to simulate. The methods are written for one trial; `simulate` batches."""

    @abc.abstractmethod
    def suited(self, config: Config) -> "AbstractEngine":
        """The engine as it has to be for this; a `ValueError` if it cannot."""

    def clock(self, p: int) -> int:
        """How many steps a unit of time has: a step is a sample, unless said otherwise."""
        return p

    @abc.abstractmethod
    def precision(self) -> Any:
        """The dtype of the state."""

    @abc.abstractmethod
    def tile(self) -> int:
        """How many trials advance together, whatever the number asked for."""

    @abc.abstractmethod
    def steps_per_call(self, p: int) -> int:
        """How many steps to take before the host hears of it."""

    @abc.abstractmethod
    def begin(
        self,
        rule: AbstractRule,
        model: SpikedModel,
        start: AbstractStart,
        key: TrialKey,
    ) -> PyTree:
        """The state before the first sample."""

    @abc.abstractmethod
    def advance(
        self,
        rule: AbstractRule,
        model: SpikedModel,
        key: TrialKey,
        state: PyTree,
        k: Step,
        stop: Step,
    ) -> PyTree:
        """The state after `stop` samples, from that after `k`."""

    @abc.abstractmethod
    def observe(
        self, key: TrialKey, state: PyTree, k: Step
    ) -> tuple[PyTree, dict[str, Array]]:
        """The fields of a `Trajectory` now, and the state (an exact snapshot of a
        chain fixes what was left open until then)."""

    @abc.abstractmethod
    def change(
        self,
        old: SpikedModel,
        new: SpikedModel,
        key: TrialKey,
        state: PyTree,
        k: Step,
        phase: Step,
    ) -> PyTree:
        """The state when the spike of `new`, which opens `phase`, takes over."""


# JAX counts the entries of an array in 32 bits, with a sign.
LONGEST_VECTOR = 2**31 - 1


def require_vectors(p: int, user: str, remedy: str) -> None:
    """Refuses what would make vectors of `p` entries, if no array is so long."""
    if p > LONGEST_VECTOR:
        raise ValueError(
            f"p = {p} is not allowed with {user}: that takes vectors of p entries, and "
            f"arrays end at {LONGEST_VECTOR}. {remedy}"
        )


def spike_of(model: SpikedModel, key: TrialKey, phase: int | Step) -> Vector:
    """The trial's spike in a phase."""
    key = jr.fold_in(jr.fold_in(key, SPIKE), phase)
    return model.spike.sample(key, model.p).astype(model.omega.dtype)


class Weights(eqx.Module):
    """`x'/sqrt(p) = norm ((1 - shrink) x/sqrt(p) + gain y)`."""

    shrink: Real
    gain: Real
    norm: Real

    def change(self, x: Array, y: Array) -> Array:
        """By how much `x/sqrt(p)`, or any linear function of it, changes, given the same
        function of `y`.

        Its factor is formed without `1 - shrink`: in single precision that is rounded by up
        to 3e-8, the same way at every step, which adds up where `shrink`, of order 1/p, is
        small.
        """
        growth = (self.norm - 1) - self.norm * self.shrink
        return self.norm * self.gain * y + growth * x

    def step(self, x: Array, y: Array) -> Array:
        """What becomes of it."""
        return x + self.change(x, y)

    def length2(self, lam2: Real, pull: Real, yy: Real) -> Real:
        """`|x'|^2/p`, from the products that `weights` takes: no pass over a vector."""
        growth = self.gain * (2 * (1 - self.shrink) * pull + self.gain * yy)
        growth = growth - self.shrink * (2 - self.shrink) * lam2
        return self.norm**2 * (lam2 + growth)


def weights(
    rule: AbstractRule,
    p: int | float,
    omega: Real,
    index: Step,
    lam2: Real,
    pull: Real,
    yy: Real,
    u: Real,
    memory: Memory,
) -> tuple[Weights, Memory]:
    """The step that the rule takes.

    All that it takes are inner products: `lam2 = |x|^2/p`, `pull = y.x/sqrt(p)`,
    `yy = |y|^2` and `u = x.xi/p`. The last is for oracles alone, as is `omega`.
    """
    lam = jnp.sqrt(lam2)
    sample = Sample(
        lam=lam,
        s2=pull**2 / lam2,
        r=yy / p,
        t=(index + 1).astype(lam.dtype) / p,
        p=jnp.asarray(p, lam.dtype),
    )
    rates, memory = learn(rule, sample, u / lam, omega, memory)
    shrink, gain = rates.decay / p, rates.gain * pull / p
    took = Weights(shrink, gain, jnp.ones_like(lam))
    if rule.projects:
        norm = 1 / jnp.sqrt(took.length2(lam2, pull, yy))
        took = Weights(shrink, gain, norm)
    return took, memory


def walk(
    draw: Callable[[Array], tuple[PyTree, ...]],
    step: Callable[[PyTree, Step, PyTree], PyTree],
    state: PyTree,
    k: Step,
    stop: Step,
    chunk: int,
    share: int = 1,
) -> PyTree:
    """Takes the steps `k, ..., stop - 1`, with their noise drawn a chunk at a time.

    `draw(blocks)` returns `share` pytrees: the noise of the steps `share * block + i`,
    for several blocks at once, from one hash. Steps outside the range are computed and
    dropped, so `k` and `stop` may be anything and are not compiled in.
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
        state, _ = lax.scan(one_block, state, (blocks, draw(blocks)))
        return block + chunk // share, state

    def unfinished(carry):
        return carry[0] * share < stop

    return lax.while_loop(unfinished, one_chunk, (k // share, state))[1]
