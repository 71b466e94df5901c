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
from .._rule import AbstractAlgorithm, require_rates, split_penalty
from .._start import AbstractStart, FirstSamples
from .._types import Count, TrialKey
from . import defaults
from .base import (
    START,
    AbstractEngine,
    AbstractPreparedEngine,
    observed_components,
    vector_length,
)
from .deflation import Targets
from .draws import SampleNoise, sample_of, sample_spikes, sample_starts
from .sample import StreamState, draw_pairs, one_sample, scan_blocks
from .turning import turned_spikes
from .update import Step, scan_steps
from .vector_step import require_start_of_vectors, vectors_of


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
    """The p-dimensional algorithm itself, O(p) a step: what one would run on data.

    Memory does not grow with the number of steps.

    **Arguments:**

    - `chunk`: how many samples are drawn at a time in the literal loop (`block=1`), an even
      number; by default as many as fit into a cache. Results depend on it by rounding
      alone.
    - `snapshots`: whether to return the whole vectors `x` and `xi` at the times of
      observation.
    - `dtype`: the precision, by default float32, or float64 if JAX's x64 mode is on.
    - `block`: how many samples are taken at a time. The products of a block with itself and
      with `x` are matrix products, and the steps are recursions of scalars: the same
      algorithm up to rounding. 1 is the literal loop, the only one for a spike that turns
      and for a schedule with a vector of its own.

    **Example:**

    ```pycon
    >>> import jax.random as jr
    >>> import inopca_jax as ino
    >>> config = ino.Config(model=ino.SpikedModel(p=100), ts=[0.0, 1.0, 2.0])
    >>> runs = ino.simulate(config, key=jr.key(0), trials=4, engine=ino.Stream())
    >>> bool(runs.finite.all())
    True
    ```
    """

    chunk: int | None = eqx.field(static=True, converter=_chunk, default=None)
    snapshots: bool = eqx.field(static=True, converter=as_flag("snapshots"), default=False)
    dtype: Any = eqx.field(static=True, converter=as_dtype, default=None)
    block: int | None = eqx.field(static=True, converter=_block, default=None)

    def prepare(self, config: Config) -> "PreparedStream":
        remedy = "Lower p, or use Diffusion(), or, over a short time, Chain()."
        p = vector_length(config.model.p, "Stream", remedy)
        block = defaults.stream_block(p) if self.block is None else int(self.block)
        if any(model.turning is not None for model in config.model.phases()):
            # The samples of a block are of one spike.
            if self.block is not None and block > 1:
                raise ValueError(
                    f"block = {block} is not allowed with a spike that turns, which is "
                    "another one at each sample: leave block out."
                )
            block = 1
        if vectors_of(config.rule, 1):
            require_start_of_vectors(config)
            if self.block is not None and block > 1:
                raise ValueError(
                    f"block = {block} is not allowed with the schedule "
                    f"{type(config.rule.tau).__name__}, which keeps a vector of its own: "
                    "leave block out."
                )
            block = 1
        if split_penalty(config.rule)[1] is not None:
            self._require_literal(config)
            block = 1
        return PreparedStream(
            dtype=jnp.result_type(float) if self.dtype is None else jnp.dtype(self.dtype),
            tile=defaults.stream_tile(),
            chunk=defaults.stream_chunk(p) if self.chunk is None else int(self.chunk),
            block=block,
            snapshots=self.snapshots,
            spikes=config.model.phases()[0].spikes,
            components=config.components,
            p=p,
        )

    def _require_literal(self, config: Config) -> None:
        """Refuses what follows from inner products, which a penalty on entries does not."""
        if self.block not in (None, 1):
            raise ValueError(
                f"block = {self.block} is not allowed with a Penalised rule: the steps of "
                "a block follow from inner products, and the penalty acts on the entries. "
                "Use Stream(block=1)."
            )
        if isinstance(config.start, FirstSamples) and config.components > 1:
            require_rates(config.rule, "FirstSamples and several components")


class PreparedStream(AbstractPreparedEngine):
    """A `Stream` for configs of one structure and one dimension `p`."""

    dtype: Any = eqx.field(static=True)
    tile: int = eqx.field(static=True)
    chunk: int = eqx.field(static=True)
    block: int = eqx.field(static=True)
    snapshots: bool = eqx.field(static=True)
    spikes: int = eqx.field(static=True)
    components: int = eqx.field(static=True)
    p: int = eqx.field(static=True)

    def steps_per_time(self, p: Any) -> Any:
        return p

    def steps_per_call(self) -> int:
        # The driver divides them by up to 8, which must not cut a block.
        return defaults.steps_per_call(
            cost=8 * self.p * self.components, least=8 * self.block
        )

    def init(
        self,
        rule: AbstractAlgorithm,
        model: SpikedModel,
        start: AbstractStart,
        key: TrialKey,
    ) -> StreamState:
        xis = sample_spikes(model, self.p, key, 0)
        key = jr.fold_in(key, START)
        xs, schedules = sample_starts(rule, model, start, xis, key, self.components)
        return StreamState.begin(xs, xis, schedules, vectors_of(rule, self.components))

    def advance(
        self,
        rule: AbstractAlgorithm,
        model: SpikedModel,
        key: TrialKey,
        state: StreamState,
        k: Step,
        stop: Step,
    ) -> StreamState:
        targets = Targets.of(model, self.components)

        def draw(pairs: Array):
            turns = model.turning is not None
            return draw_pairs(key, pairs, self.p, self.spikes, model.observed, turns)

        def step(state: StreamState, index: Step, noise: SampleNoise) -> StreamState:
            y = sample_of(model, state.xis, noise)
            state = one_sample(rule, model, targets, state, index, y)
            if model.turning is None:
                return state
            assert noise.turns is not None
            zs = [z.astype(y.dtype) for z in noise.turns]
            xis = turned_spikes(state.xis, model.turning, model.p, zs)
            return eqx.tree_at(lambda s: s.xis, state, xis)

        if self.block == 1:
            return scan_steps(draw, step, state, k, stop, self.chunk, share=2)
        return scan_blocks(rule, model, targets, draw, state, k, stop, self.block)

    def observe(
        self, key: TrialKey, state: StreamState, k: Step
    ) -> tuple[StreamState, dict[str, Array]]:
        vectors = dict(xs=state.xs, xis=state.xis) if self.snapshots else {}
        return state, observed_components(*state.observe(), **vectors)

    def switch(
        self,
        old: SpikedModel,
        new: SpikedModel,
        key: TrialKey,
        state: StreamState,
        k: Step,
        phase: Count,
    ) -> StreamState:
        xis = sample_spikes(new, self.p, key, phase)
        return eqx.tree_at(lambda s: s.xis, state, xis)


def _even(name: str, value: Any, least: int) -> int:
    remedy = f"pass an even number of samples, at least {least}"
    whole = require_whole(name, value, least, remedy)
    require(name, value, lambda n: n % 2 == 0, remedy)
    return whole
