"""The p-dimensional algorithm itself."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array

from .._check import require, require_whole
from .._model import SpikedModel
from .._noise import normals, words_of
from .._rule import AbstractRule, learn
from .._sample import Sample
from .._start import AbstractStart
from .._types import Memory, TrialKey, Vector
from . import defaults
from .base import NOISE, SIGNAL, START, AbstractEngine, Step, spike_of, start_norm, walk


class StreamState(eqx.Module):
    x: Vector
    xi: Vector
    memory: Memory


class Stream(AbstractEngine):
    """One sample `y` a step, O(p) a step: what one would run on data.

    Memory does not grow with the number of steps. `chunk` is how many samples are
    drawn at once (even; by default a cacheful) and changes no bit of the result;
    `snapshots` keeps `x` and `xi` at the observation times; `dtype` is float32, or
    float64 if JAX's x64 mode is on.
    """

    chunk: int | None = eqx.field(static=True, default=None)
    snapshots: bool = eqx.field(static=True, default=False)
    dtype: Any = eqx.field(static=True, default=None)

    def __check_init__(self):
        if self.chunk is not None:
            # Two steps share a draw, and a loop of one pair would be compiled without
            # the loop, and round differently.
            remedy = "pass an even number of steps, at least 4"
            require_whole("chunk", self.chunk, 4, remedy)
            require("chunk", self.chunk, lambda n: n % 2 == 0, remedy)

    def check(self, p: int) -> None:
        pass

    def precision(self, p: int) -> Any:
        return jnp.result_type(float) if self.dtype is None else jnp.dtype(self.dtype)

    def tile(self) -> int:
        return defaults.stream_tile()

    def _steps_at_once(self, p: int) -> int:
        return defaults.stream_chunk(p) if self.chunk is None else self.chunk

    def steps_per_call(self, p: int) -> int:
        return defaults.steps_per_call(self._steps_at_once(p), cost=8 * p)

    def begin(
        self,
        rule: AbstractRule,
        model: SpikedModel,
        start: AbstractStart,
        key: TrialKey,
    ) -> StreamState:
        xi = spike_of(model, key, 0)
        along, across = start.mixture()
        z = jr.normal(jr.fold_in(key, START), (model.p,)).astype(xi.dtype)
        x = along * xi + across * z
        norm = jnp.sqrt(jnp.sum(x**2) / model.p)
        x = x * (start_norm(rule, start) / norm)
        return StreamState(x, xi, rule.tau.init(model.p))

    def advance(
        self,
        rule: AbstractRule,
        model: SpikedModel,
        key: TrialKey,
        state: StreamState,
        k: Step,
        stop: Step,
    ) -> StreamState:
        def step(state: StreamState, index: Step, noise) -> StreamState:
            return _update(rule, model, state, index, sample_of(model, state.xi, noise))

        return walk(
            lambda pairs: draw_pairs(key, pairs, model.p),
            step,
            state,
            k,
            stop,
            self._steps_at_once(model.p),
            share=2,
        )

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
        return StreamState(state.x, spike_of(new, key, phase), state.memory)


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
    return jnp.sqrt(model.omega / model.p) * c * xi + a


def _update(
    rule: AbstractRule, model: SpikedModel, state: StreamState, index: Step, y: Vector
) -> StreamState:
    p, x = model.p, state.x
    # Sums of products and not `dot`: on an accelerator a dot may round its inputs.
    xx, yx, yy = jnp.sum(x * x), jnp.sum(y * x), jnp.sum(y * y)
    lam = jnp.sqrt(xx / p)
    sample = Sample(
        lam=lam,
        s2=yx**2 / xx,
        r=yy / p,
        t=(index + 1).astype(x.dtype) / p,
        p=jnp.asarray(p, x.dtype),
    )
    q = jnp.sum(state.xi * x) / (p * lam)
    rates, memory = learn(rule, sample, q, model.omega, state.memory)
    keep, gain = 1 - rates.decay / p, rates.gain * yx / p
    if rule.projects:
        # |x'| from the scalars at hand: the projection costs no pass over the vector.
        scale = jnp.sqrt(p / (keep**2 * xx + 2 * keep * gain * yx + gain**2 * yy))
        keep, gain = keep * scale, gain * scale
    return StreamState(keep * x + gain * y, state.xi, memory)
