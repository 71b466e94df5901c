"""The exact chain of the overlap and the norm: O(1) a step in any dimension."""

import math
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array

from .._check import as_dtype, as_flag, require, require_whole
from .._config import Config, known_rates
from .._model import SpikedModel
from .._noise import chi_square, normals, words_of
from .._order_parameters.initial import start_moments
from .._rule import AbstractRule
from .._start import AbstractGaussianStart, AbstractStart
from .._types import Memory, Real, TrialKey, Vector, Words
from . import defaults
from .base import (
    CHANGE,
    LONGEST_VECTOR,
    NOISE,
    SNAPSHOT,
    START,
    AbstractEngine,
    Step,
    require_vectors,
    spike_of,
    walk,
    weights,
)


class Frame(eqx.Module):
    """What turns the scalars back into the vector: `x = u xi + sqrt(p) (v axis + w e)`
    with `e` uniform among the unit vectors orthogonal to `xi` and `axis`."""

    v: Real
    axis: Vector
    xi: Vector


class ChainState(eqx.Module):
    """`u = x.xi/p`, `w` the length of the rest over `sqrt(p)`, so `lam^2 = u^2 + w^2`.

    With a `frame`, `w` is what is left after `v` along a third direction, too.
    """

    u: Real
    w: Real
    memory: Memory
    frame: Frame | None


def _chunk(chunk: Any) -> int | None:
    # A loop of one step is compiled without the loop, and rounds differently.
    if chunk is None:
        return None
    return require_whole("chunk", chunk, 2, "pass a whole number, at least 2")


class Chain(AbstractEngine):
    """The same law as `Stream`'s at every p, from a few random numbers a step.

    The noise is isotropic, so only its parts along `xi` and along the rest of `x` and
    the length of what remains matter. With `snapshots` the direction of `x` at the last
    observation is followed as well, and the whole vector is drawn exactly at O(p) an
    observation.

    The state is float64, whatever JAX's mode: a sample changes it by about tau/p of itself,
    which the rounding of a float32 would swallow. On a CPU that takes 5 % longer. With
    `dtype="float32"` the change of `q` and `lam` over a run is off by 1 % at tau/p = 1e-6,
    and a smaller rate is refused. In float64 a rate of 0.5 is resolved up to p = 1e14; at
    1e15 the change is off by up to 16 %, which over the longest run that there is, 2^31
    samples, amounts to 2e-8.
    `follow` is set where the whole vector has to be: do not set it.
    """

    chunk: int | None = eqx.field(static=True, converter=_chunk, default=None)
    snapshots: bool = eqx.field(static=True, converter=as_flag("snapshots"), default=False)
    dtype: Any = eqx.field(static=True, converter=as_dtype, default=None)
    follow: bool = eqx.field(static=True, default=False)

    def suited(self, config: Config) -> "Chain":
        model, start = config.model, config.start
        if self.precision() == jnp.float32:
            _require_resolved(config)
        # What is orthogonal to the spike is uniformly directed, if it is so at the start,
        # until the spike has changed once: from then on x remembers the spikes before.
        uniform = 1 if isinstance(start, AbstractGaussianStart) else 0
        changes = len(model.phases()) - 1
        follow = self.snapshots or changes > uniform
        if follow and model.p < 4:
            raise ValueError(
                f"p = {model.p} is not allowed with snapshots of a Chain, or a change of "
                "the spike through which it has to follow the whole vector: that takes "
                "three directions and p >= 4. Use Stream()."
            )
        if self.snapshots:
            require_vectors(model.p, "snapshots", "Lower p, or leave snapshots out.")
        if changes > 0 or uniform == 0:
            user = "a Chain if the spike changes, or the start is not a normal one"
            remedy = "Use Diffusion(), or one spike and a WarmStart or ColdStart."
            require_vectors(model.p, user, remedy)
        return Chain(self.chunk, self.snapshots, self.dtype, follow)

    def precision(self) -> Any:
        return jnp.dtype("float64" if self.dtype is None else self.dtype)

    def tile(self) -> int:
        return defaults.vector_tile() if self.follow else defaults.chain_tile()

    def _steps_at_once(self) -> int:
        return defaults.chain_chunk() if self.chunk is None else int(self.chunk)

    def steps_per_call(self, p: int) -> int:
        return defaults.steps_per_call(cost=1000)

    def begin(
        self,
        rule: AbstractRule,
        model: SpikedModel,
        start: AbstractStart,
        key: TrialKey,
    ) -> ChainState:
        _, lam0 = start_moments(rule, model, start)
        memory = rule.tau.init(model.float_p)
        key_start = jr.fold_in(key, START)
        if self.follow or not isinstance(start, AbstractGaussianStart):
            xi = spike_of(model, key, 0)
            z = jr.normal(key_start, (model.p,)).astype(xi.dtype)
            frame, u = _resolve(xi, start.sample(key_start, xi), fallback=z)
            lam = jnp.sqrt(u**2 + frame.v**2)
            u, v = u * (lam0 / lam), frame.v * (lam0 / lam)
            if not self.follow:
                return ChainState(u, v, memory, None)
            frame = eqx.tree_at(lambda f: f.v, frame, v)
            return ChainState(u, jnp.zeros_like(u), memory, frame)
        along, across = start.mixture()
        z1, rest = _one_of(key_start, model.p, lam0.dtype)
        # In units of sqrt(p): along xi, c + s z1/sqrt(p); the rest, s sqrt(rest/p).
        u = along + across * z1 / model.float_p**0.5
        w = across * jnp.sqrt(rest / model.float_p)
        lam = jnp.sqrt(u**2 + w**2)
        return ChainState(u * (lam0 / lam), w * (lam0 / lam), memory, None)

    def advance(
        self,
        rule: AbstractRule,
        model: SpikedModel,
        key: TrialKey,
        state: ChainState,
        k: Step,
        stop: Step,
    ) -> ChainState:
        words = words_of(jr.fold_in(key, NOISE))
        return walk(
            lambda steps: (_draw(words, steps, model.p, self.follow),),
            lambda state, index, noise: _update(rule, model, state, index, noise),
            state,
            k,
            stop,
            self._steps_at_once(),
        )

    def observe(
        self, key: TrialKey, state: ChainState, k: Step
    ) -> tuple[ChainState, dict[str, Array]]:
        vectors = {}
        if self.snapshots:
            x, state = _materialise(key, state, k)
            assert state.frame is not None
            vectors = dict(x=x, xi=state.frame.xi)
        v = 0.0 if state.frame is None else state.frame.v
        lam = jnp.sqrt(state.u**2 + state.w**2 + v**2)
        return state, dict(q=state.u / lam, lam=lam) | vectors

    def change(
        self,
        old: SpikedModel,
        new: SpikedModel,
        key: TrialKey,
        state: ChainState,
        k: Step,
        phase: Step,
    ) -> ChainState:
        xi = spike_of(new, key, phase)
        if state.frame is not None:
            x, _ = _materialise(key, state, k)
            frame, u = _resolve(xi, x, fallback=state.frame.axis)
            return ChainState(u, jnp.zeros_like(u), state.memory, frame)
        rho = jnp.sum(spike_of(old, key, phase - 1) * xi) / new.float_p
        # The part of x orthogonal to the old spike, the first, is uniformly directed in
        # p - 1 dimensions; `e` is its coordinate along what is new of the new spike.
        key = jr.fold_in(jr.fold_in(key, CHANGE), phase)
        z, rest = _one_of(key, new.p - 1, xi.dtype)
        e = z / jnp.sqrt(z**2 + rest)
        across = jnp.sqrt(jnp.maximum(1 - rho**2, 0))  # rho may round to above 1
        u = state.u * rho + state.w * across * e
        lam2 = state.u**2 + state.w**2
        w = jnp.sqrt(jnp.maximum(lam2 - u**2, 0))
        return ChainState(u, w, state.memory, None)


_LEAST_STEP = 1e-6
"""The least tau/p in float32; there the change of the overlap is off by 1 %."""


def _require_resolved(config: Config) -> None:
    """Refuses steps that the rounding of a float32 would swallow."""
    rule, p = config.rule, config.model.float_p
    for tau in known_rates(rule.tau, p, config.ts[-1]):
        require(
            "tau",
            tau,
            lambda x: x >= _LEAST_STEP * p,
            f"steps of tau/p below {_LEAST_STEP:g}, here p = {p:.16g}, are lost in the "
            "rounding of dtype = float32; leave dtype out",
        )


def _one_of(key: TrialKey, n: int, dtype: Any) -> tuple[Array, Array]:
    """One coordinate of a standard normal vector in n dimensions, and the square of
    the length of the others."""
    words, zero = words_of(key), jnp.zeros((), jnp.uint32)
    z, other = (a.astype(dtype) for a in normals(words, zero, zero))
    if n <= LONGEST_VECTOR:
        return z, chi_square(words, zero, 1, n - 1).astype(dtype)
    # `chi_square` is in float32, whose rounding is not small against the scatter here. This
    # is what it proposes, in more digits; it would reject one in about 10 n of these.
    d = (n - 1) / 2 - 1 / 3
    return z, 2 * d * (1 + other / math.sqrt(9 * d)) ** 3


def _draw(words: Words, steps: Array, p: int, third: bool) -> dict[str, Array]:
    """Standard normals for the directions that are followed, and the rest's square."""
    c0 = steps.astype(jnp.uint32)
    along, across = normals(words, c0, jnp.zeros_like(c0))
    noise = dict(along=along, across=across)
    if third:
        noise["axis"] = normals(words, c0, jnp.ones_like(c0))[0]
    # In float32 it is rounded by 6e-8 at most. Over all of the steps that a counter has,
    # 2^31, that moves the norm by less than 0.003 of the standard deviation of its noise.
    return noise | dict(rest=chi_square(words, c0, 2, p - 3 if third else p - 2))


def _update(
    rule: AbstractRule,
    model: SpikedModel,
    state: ChainState,
    index: Step,
    noise: dict[str, Array],
) -> ChainState:
    u, w = state.u, state.w
    noise = {name: part.astype(u.dtype) for name, part in noise.items()}
    y_u = jnp.sqrt(1 + model.omega) * noise["along"]
    y_w, rest = noise["across"], noise["rest"]
    lam2, pull, yy = u**2 + w**2, u * y_u + w * y_w, y_u**2 + y_w**2 + rest
    if state.frame is not None:
        v, y_v = state.frame.v, noise["axis"]
        lam2, pull, yy = lam2 + v**2, pull + v * y_v, yy + y_v**2
    took, memory = weights(
        rule, model.float_p, model.omega, index, lam2, pull, yy, u, state.memory
    )
    frame = state.frame
    if frame is not None:
        v = took.step(frame.v, noise["axis"])
        frame = eqx.tree_at(lambda f: f.v, frame, v)
    new_w = jnp.sqrt(took.step(w, y_w) ** 2 + (took.norm * took.gain) ** 2 * rest)
    return ChainState(took.step(u, y_u), new_w, memory, frame)


def _materialise(key: TrialKey, state: ChainState, k: Step) -> tuple[Vector, ChainState]:
    """Draws the vector that the chain stands for, and the chain that goes on from it."""
    frame = state.frame
    assert frame is not None
    p = frame.xi.size
    z = jr.normal(jr.fold_in(jr.fold_in(key, SNAPSHOT), k), (p,)).astype(state.u.dtype)
    z = z - jnp.sum(z * frame.xi) / p * frame.xi
    z = z - jnp.sum(z * frame.axis) * frame.axis
    e = z / jnp.sqrt(jnp.sum(z**2))
    across = frame.v * frame.axis + state.w * e
    x = state.u * frame.xi + p**0.5 * across
    length = jnp.sqrt(frame.v**2 + state.w**2)
    moved = length > 0
    axis = jnp.where(moved, across / jnp.where(moved, length, 1), frame.axis)
    frame = Frame(length, axis, frame.xi)
    return x, ChainState(state.u, jnp.zeros_like(state.w), state.memory, frame)


def _resolve(xi: Vector, x: Vector, fallback: Vector) -> tuple[Frame, Real]:
    """`x = u xi + sqrt(p) v axis`; `fallback` gives the axis where x is along xi."""
    p = xi.size

    def across(vector: Vector) -> Vector:
        return vector - jnp.sum(vector * xi) / p * xi

    def unit(vector: Vector) -> Vector:
        return vector / jnp.sqrt(jnp.sum(vector**2))

    u, part = jnp.sum(x * xi) / p, across(x)
    v = jnp.sqrt(jnp.sum(part**2) / p)
    # Below this, `part` is rounding error and points anywhere.
    tilted = v > 100 * jnp.finfo(xi.dtype).eps * jnp.abs(u)
    # Twice, because a short part keeps few digits of its orthogonality at once.
    axis = unit(across(unit(jnp.where(tilted, part, fallback))))
    return Frame(jnp.where(tilted, v, 0), axis, xi), u
