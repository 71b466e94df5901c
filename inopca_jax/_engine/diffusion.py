"""The chain in macroscopic steps: a simulator whose cost does not depend on p."""

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jax import lax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from .._check import positive, require, require_dtype
from .._config import Config
from .._expansion import (
    COARSE,
    Cloud,
    Slow,
    change,
    drift,
    first_kick,
    noise_of,
    start as start_law,
)
from .._model import SpikedModel
from .._noise import normals, words_of
from .._rule import AbstractRule
from .._start import AbstractStart
from .._types import Real, TrialKey, Words
from . import defaults
from .base import CHANGE, NOISE, START, AbstractEngine, Step
from .plan import MOST_STEPS

_NORMALS = 2 * len(COARSE.values) + 1


class Diffusion(AbstractEngine):
    """The law of the chain to leading order in 1/p, in steps of `dt` of macroscopic time.

    A step of `dt` stands for `p dt` samples. It is their mean, by the mean field's ODE
    (Runge-Kutta, in two halves), with their scatter and the mean's correction of order
    1/p in between. The error in `dt` is of order `dt^4` in the mean field, which no p
    makes small, and of order `dt^2/p` in the rest. A cold start leaves `q = 0` by itself,
    and a change of the spike is followed. For `p` below some hundred, and for algorithms
    that forget their start at once, there is the `Chain`. `dtype` is as the chain's;
    `ticks` is set by `simulate`: do not set it.
    """

    dt: float = eqx.field(static=True, converter=float, default=0.1)
    dtype: Any = eqx.field(static=True, default=None)
    ticks: int = eqx.field(static=True, default=0)

    def __check_init__(self):
        require("dt", self.dt, positive, "pass a positive step of macroscopic time")
        require_dtype(self.dtype)

    def suited(self, config: Config) -> "Diffusion":
        kick = float(first_kick(config))
        if not kick <= 1:
            raise ValueError(
                f"Diffusion is not allowed here: the first sample moves the estimate by "
                f"{math.sqrt(kick):.2g} times its length, which is no small step. Use "
                "Chain(), a b0 of order p, t0 > 0 or a larger lam0."
            )
        # Time is counted in samples, or, where these are too many for a counter, in
        # powers of two.
        p, end = config.model.p, max(float(config.ts[-1]), 1.0)
        ticks = p if p * end <= MOST_STEPS else 2 ** math.floor(math.log2(MOST_STEPS / end))
        return Diffusion(self.dt, self.dtype, ticks)

    def clock(self, p: int) -> int:
        return self.ticks

    def precision(self, p: int) -> Any:
        return defaults.precision(self.dtype, p)

    def tile(self) -> int:
        return defaults.chain_tile()

    def _stride(self) -> int:
        """The ticks in a step."""
        return max(1, round(self.dt * self.ticks))

    def steps_per_call(self, p: int) -> int:
        # Whole steps, also of an eighth of it: that a call ends must not cut one.
        return self._stride() * defaults.steps_per_call(cost=30_000)

    def begin(
        self,
        rule: AbstractRule,
        model: SpikedModel,
        start: AbstractStart,
        key: TrialKey,
    ) -> Slow:
        cloud = start_law(rule, model, start)
        return _drawn(cloud, words_of(jr.fold_in(key, START)), model.p)

    def advance(
        self,
        rule: AbstractRule,
        model: SpikedModel,
        key: TrialKey,
        state: Slow,
        k: Step,
        stop: Step,
    ) -> Slow:
        words, stride = words_of(jr.fold_in(key, NOISE)), self._stride()
        dtype = state.n.dtype

        def one_step(carry: tuple[Step, Slow]) -> tuple[Step, Slow]:
            k, slow = carry
            taken = jnp.minimum(stride - k % stride, stop - k)
            t, dt = (x.astype(dtype) / self.ticks for x in (k, taken))
            z = _normals(words, k.astype(jnp.uint32), _NORMALS).astype(dtype)
            return k + taken, _step(rule, model, t, dt, slow, z)

        return lax.while_loop(lambda carry: carry[0] < stop, one_step, (k, state))[1]

    def observe(self, key: TrialKey, state: Slow, k: Step) -> tuple[Slow, dict[str, Array]]:
        return state, dict(q=state.q(), lam=state.lam())

    def change(
        self,
        old: SpikedModel,
        new: SpikedModel,
        key: TrialKey,
        state: Slow,
        k: Step,
        phase: Step,
    ) -> Slow:
        words = words_of(jr.fold_in(jr.fold_in(key, CHANGE), phase))
        return _drawn(change(new.spike, state), words, new.p)


def _normals(words: Words, c0: Array, count: int) -> Float[Array, " count"]:
    """The standard normals of one counter."""
    lanes = jnp.arange(-(-count // 2), dtype=jnp.uint32)
    pairs = normals(words, jnp.full_like(lanes, c0), lanes)
    return jnp.concatenate(pairs)[:count]


def _drawn(cloud: Cloud, words: Words, p: int) -> Slow:
    """One of the cloud."""
    state, unravel = ravel_pytree(cloud.centre)
    z = _normals(words, jnp.zeros((), jnp.uint32), state.size).astype(state.dtype)
    scatter = _root(cloud.covariance) @ z / math.sqrt(p)
    return unravel(state + cloud.shift / p + scatter)


def _root(covariance: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """Cholesky's factor of a matrix that may be singular, with zeros where it is."""
    n = len(covariance)
    factor = jnp.zeros_like(covariance)
    for j in range(n):
        column = covariance[:, j] - factor @ factor[j]
        pivot = column[j]
        kept = pivot > 1e-6 * covariance[j, j]
        root = jnp.sqrt(jnp.where(kept, pivot, 1))
        below = jnp.arange(n) >= j
        factor = factor.at[:, j].set(jnp.where(kept & below, column / root, 0))
    return factor


def _step(
    rule: AbstractRule,
    model: SpikedModel,
    t: Real,
    dt: Real,
    slow: Slow,
    z: Float[Array, " normals"],
) -> Slow:
    """Half of the way with the flow, all of the scatter, and the other half: symmetric,
    and so of second order; the flow itself, which no p makes small, of the fourth."""
    _, unravel = ravel_pytree(slow)

    def velocity(t: Real, state: Array) -> Array:
        return ravel_pytree(drift(rule, model, t, unravel(state)))[0]

    def flow(t: Real, state: Array) -> Array:
        h = dt / 2
        k1 = velocity(t, state)
        k2 = velocity(t + h / 2, state + h / 2 * k1)
        k3 = velocity(t + h / 2, state + h / 2 * k2)
        k4 = velocity(t + h, state + h * k3)
        return state + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

    middle = t + dt / 2
    state = flow(t, ravel_pytree(slow)[0])
    noise = noise_of(rule, model, middle, unravel(state))
    speed = velocity(middle, state)
    _, acceleration = jax.jvp(velocity, (middle, state), (jnp.ones_like(t), speed))
    # Samples take steps of length 1/p, which lag behind the flow by half its acceleration.
    shift = (noise.next_drift - acceleration / 2) / model.p
    state = state + dt * shift + jnp.sqrt(dt / model.p) * noise.draw(z)
    return unravel(flow(middle, state))
