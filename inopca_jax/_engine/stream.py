"""The p-dimensional algorithm itself."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array

from .._check import as_dtype, as_flag, require, require_whole
from .._config import Config
from .._model import SpikedModel
from .._order_parameters.initial import start_moments
from .._rule import AbstractRule
from .._start import AbstractStart
from .._types import TrialKey
from . import defaults
from .base import START, AbstractEngine, Step, require_vectors, spike_of, walk
from .steps import StreamState, draw_pairs, one_sample, sample_of, walk_blocks


def _chunk(chunk: Any) -> int | None:
    # Two samples share a draw, and a loop of one pair would be compiled without the loop,
    # and round differently.
    return None if chunk is None else _even("chunk", chunk, least=4)


def _block(block: Any) -> int | None:
    if block is None:
        return None
    literal = isinstance(block, (int, np.integer)) and not isinstance(block, bool)
    return 1 if literal and block == 1 else _even("block", block, least=2)


class Stream(AbstractEngine):
    """One sample `y` a step, O(p) a step: what one would run on data.

    Memory does not grow with the number of steps. `block` samples are taken at a time:
    their products with each other and with `x` are matrix products, the steps
    themselves recursions of scalars. It is the same algorithm up to rounding, and
    `block=1` is the literal loop, for which `chunk` samples are drawn at once (even;
    by default a cacheful; no bit depends on it). `snapshots` keeps `x` and `xi` at the
    observation times; `dtype` is float32, or float64 if JAX's x64 mode is on.
    """

    chunk: int | None = eqx.field(static=True, converter=_chunk, default=None)
    snapshots: bool = eqx.field(static=True, converter=as_flag("snapshots"), default=False)
    dtype: Any = eqx.field(static=True, converter=as_dtype, default=None)
    block: int | None = eqx.field(static=True, converter=_block, default=None)

    def suited(self, config: Config) -> "Stream":
        remedy = "Lower p, or use Diffusion(), or, over a short time, Chain()."
        require_vectors(config.model.p, "Stream", remedy)
        return self

    def precision(self) -> Any:
        return jnp.result_type(float) if self.dtype is None else jnp.dtype(self.dtype)

    def tile(self) -> int:
        return defaults.stream_tile()

    def _steps_at_once(self, p: int) -> int:
        return defaults.stream_chunk(p) if self.chunk is None else int(self.chunk)

    def _samples_at_once(self, p: int) -> int:
        return defaults.stream_block(p) if self.block is None else int(self.block)

    def steps_per_call(self, p: int) -> int:
        # `simulate` divides them by up to 8, and must not cut a block.
        return defaults.steps_per_call(cost=8 * p, least=8 * self._samples_at_once(p))

    def begin(
        self,
        rule: AbstractRule,
        model: SpikedModel,
        start: AbstractStart,
        key: TrialKey,
    ) -> StreamState:
        xi = spike_of(model, key, 0)
        x = start.sample(jr.fold_in(key, START), xi)
        norm = jnp.sqrt(jnp.sum(x**2) / model.float_p)
        x = x * (start_moments(rule, model, start)[1] / norm)
        return StreamState.begin(x, xi, rule.tau.init(model.float_p))

    def advance(
        self,
        rule: AbstractRule,
        model: SpikedModel,
        key: TrialKey,
        state: StreamState,
        k: Step,
        stop: Step,
    ) -> StreamState:
        def draw(pairs: Array):
            return draw_pairs(key, pairs, model.p)

        def step(state: StreamState, index: Step, noise) -> StreamState:
            y = sample_of(model, state.xi, noise)
            return one_sample(rule, model, state, index, y)

        size = self._samples_at_once(model.p)
        if size == 1:
            chunk = self._steps_at_once(model.p)
            return walk(draw, step, state, k, stop, chunk, share=2)
        return walk_blocks(rule, model, draw, state, k, stop, size)

    def observe(
        self, key: TrialKey, state: StreamState, k: Step
    ) -> tuple[StreamState, dict[str, Array]]:
        p = state.x.size
        lam = jnp.sqrt(jnp.sum(state.x**2) / p)
        seen = dict(q=jnp.sum(state.xi * state.x) / (p * lam), lam=lam)
        return state, seen | (dict(x=state.x, xi=state.xi) if self.snapshots else {})

    def change(
        self,
        old: SpikedModel,
        new: SpikedModel,
        key: TrialKey,
        state: StreamState,
        k: Step,
        phase: Step,
    ) -> StreamState:
        xi = spike_of(new, key, phase)
        return eqx.tree_at(lambda s: s.xi, state, xi)


def _even(name: str, value: Any, least: int) -> int:
    remedy = f"pass an even number of samples, at least {least}"
    whole = require_whole(name, value, least, remedy)
    require(name, value, lambda n: n % 2 == 0, remedy)
    return whole
