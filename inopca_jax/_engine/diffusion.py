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

from .._batch.calls import MOST_STEPS
from .._check import as_dtype, as_number, positive, require
from .._config import Config
from .._model import SpikedModel
from .._noise import normals, words_of
from .._numerics import fast_two_sum
from .._order_parameters.increments import Slow, drift, noise_of
from .._order_parameters.initial import Cloud, change, first_kick, start as start_law
from .._order_parameters.limit import COARSE
from .._rule import AbstractRule
from .._start import AbstractStart
from .._types import Real, TrialKey, Words
from . import defaults
from .base import CHANGE, NOISE, START, AbstractEngine, Step

_LONGEST = 1e6  # so that a thousandth of a unit of time can be told
_NORMALS = 2 * len(COARSE.values) + 1
# The longest step, over the time in which the fastest motion grows or decays e-fold.
_BOLDEST = 0.5


class Diffusion(AbstractEngine):
    """The law of the chain to leading order in 1/p, in steps of `dt` of macroscopic time.

    A step of `dt` stands for `p dt` samples. It is their mean, by the mean field's ODE
    (Runge-Kutta, in two halves), with their scatter and the mean's correction of order
    1/p in between. The error in `dt` is of order `dt^4` in the mean field, which no p
    makes small, and of order `dt^2/p` in the rest; where the mean field moves faster than
    that allows, the steps of a trial are shorter. A cold start leaves `q = 0` by itself,
    and a change of the spike is followed. For `p` below a hundred, and for algorithms
    that forget their start at once, there is the `Chain`. A look at a time that is no
    multiple of `dt` cuts a step, and so changes the last digits of what follows. `dtype`
    is float32, or float64 if JAX's x64 mode is on: what the rounding of a state leaves out
    is carried along, so that small steps add up. `ticks` and `stride`, in ticks, are set by
    `simulate`.
    """

    dt: Real = eqx.field(converter=as_number("dt"), default=0.1)
    dtype: Any = eqx.field(static=True, converter=as_dtype, default=None)
    ticks: int = eqx.field(static=True, default=0)
    stride: Step | None = None

    def __check_init__(self):
        require("dt", self.dt, positive, "pass a positive step of macroscopic time")

    def suited(self, config: Config) -> "Diffusion":
        p, end = config.model.p, float(config.ts[-1])
        if p < 100:
            raise ValueError(
                f"p = {p} is not allowed with Diffusion, which is the leading order in "
                "1/p: use Chain(), which is exact."
            )
        if end > _LONGEST:
            raise ValueError(
                f"ts up to {end} is not allowed: time is counted up to {_LONGEST:g}. "
                "Shorten ts."
            )
        kick = first_kick(config)
        if not kick <= 0.1:
            raise ValueError(
                f"Diffusion is not allowed here: the first sample moves the estimate by "
                f"{math.sqrt(kick):.2g} times its length, which is no small step. Use "
                f"Chain(), for at most {MOST_STEPS} samples, a b0 of order p, t0 > 0 or a "
                "larger lam0."
            )
        # Time is counted in samples, or, where these are too many for a counter, in
        # powers of two.
        ticks = p if p * end <= MOST_STEPS else 2 ** math.floor(math.log2(MOST_STEPS / end))
        stride = min(max(1, round(float(self.dt) * ticks)), MOST_STEPS)
        return Diffusion(self.dt, self.dtype, ticks, jnp.asarray(stride, jnp.int32))

    def clock(self, p: int) -> int:
        return self.ticks

    def precision(self) -> Any:
        return jnp.result_type(float) if self.dtype is None else jnp.dtype(self.dtype)

    def tile(self) -> int:
        return defaults.chain_tile()

    def steps_per_call(self, p: int) -> int:
        # Whole steps, also of an eighth of it: that a call ends must not cut one.
        assert self.stride is not None
        return int(self.stride) * defaults.steps_per_call(cost=100_000)

    def begin(
        self,
        rule: AbstractRule,
        model: SpikedModel,
        start: AbstractStart,
        key: TrialKey,
    ) -> "Walk":
        cloud = start_law(rule, model, start)
        return Walk.at(_drawn(cloud, words_of(jr.fold_in(key, START)), model.float_p))

    def advance(
        self,
        rule: AbstractRule,
        model: SpikedModel,
        key: TrialKey,
        state: "Walk",
        k: Step,
        stop: Step,
    ) -> "Walk":
        words, dtype = words_of(jr.fold_in(key, NOISE)), state.fastest.dtype
        stride = self.stride
        assert stride is not None

        def one_step(carry: tuple[Step, Walk]) -> tuple[Step, Walk]:
            k, walk = carry
            # No longer than the fastest motion allows, nor shorter than a tick; if that is
            # not a number, nothing is left to lose.
            bold = stride.astype(dtype)
            allowed = self.ticks * _BOLDEST / walk.fastest
            allowed = jnp.where(allowed < bold, allowed, bold).astype(k.dtype)
            taken = jnp.minimum(stride - k % stride, jnp.maximum(allowed, 1))
            taken = jnp.minimum(taken, stop - k)
            t, dt = (x.astype(dtype) / float(self.ticks) for x in (k, taken))
            z = _normals(words, k.astype(jnp.uint32), _NORMALS).astype(dtype)
            return k + taken, _step(rule, model, t, dt, walk, z)

        return lax.while_loop(lambda carry: carry[0] < stop, one_step, (k, state))[1]

    def observe(
        self, key: TrialKey, state: "Walk", k: Step
    ) -> tuple["Walk", dict[str, Array]]:
        return state, dict(q=state.slow.q(), lam=state.slow.lam())

    def change(
        self,
        old: SpikedModel,
        new: SpikedModel,
        key: TrialKey,
        state: "Walk",
        k: Step,
        phase: Step,
    ) -> "Walk":
        words = words_of(jr.fold_in(jr.fold_in(key, CHANGE), phase))
        return Walk.at(_drawn(change(new.spike, state.slow), words, new.float_p))


class Walk(eqx.Module):
    """A trial: its slow variables; what their rounding has left out, in the order of
    `ravel_pytree`; and a bound of the rates at which they move."""

    slow: Slow
    rest: Float[Array, " state"]
    fastest: Real

    @staticmethod
    def at(slow: Slow) -> "Walk":
        """At the begin of a phase. How fast it is shows after a first step, of one tick."""
        rest = jnp.zeros_like(ravel_pytree(slow)[0])
        return Walk(slow, rest, jnp.full_like(slow.n, jnp.inf))


def _normals(words: Words, c0: Array, count: int) -> Float[Array, " count"]:
    """The standard normals of one counter."""
    lanes = jnp.arange(-(-count // 2), dtype=jnp.uint32)
    pairs = normals(words, jnp.full_like(lanes, c0), lanes)
    return jnp.concatenate(pairs)[:count]


def _drawn(cloud: Cloud, words: Words, p: float) -> Slow:
    """One of the cloud."""
    state, unravel = ravel_pytree(cloud.centre)
    z = _normals(words, jnp.zeros((), jnp.uint32), state.size).astype(state.dtype)
    scatter = _root(cloud.covariance) @ z / math.sqrt(p)
    return _inside(unravel(state + cloud.shift / p + scatter))


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


def _inside(slow: Slow) -> Slow:
    """Back to where vectors are, should noise at a small p have left it."""
    n = jnp.abs(slow.n)
    lam = jnp.sqrt(n)
    m, c = (jnp.clip(x, -lam, lam) for x in (slow.m, slow.c))
    return Slow(m, c, n, slow.memory, slow.rho)


_NODES, _WEIGHTS = (0.0, 0.5, 0.5, 1.0), (1 / 6, 1 / 3, 1 / 3, 1 / 6)


def _step(
    rule: AbstractRule,
    model: SpikedModel,
    t: Real,
    dt: Real,
    walk: Walk,
    z: Float[Array, " normals"],
) -> Walk:
    """Half of the way with the flow, all of the scatter, and the other half: symmetric,
    and so of second order; the flow itself, which no p makes small, of the fourth."""
    begin, unravel = ravel_pytree(walk.slow)

    def velocity(t: Real, state: Array) -> Array:
        return ravel_pytree(drift(rule, model, t, unravel(state)))[0]

    def flow(t: Real, state: Array) -> Array:
        """The change over half a step, by Runge and Kutta's four stages, as a loop: a
        quarter as much to compile."""

        def stage(carry: tuple[Array, Array], table: Array):
            before, total = carry
            part, weight = dt / 2 * table
            now = velocity(t + part, state + part * before)
            return (now, total + weight * now), None

        table = jnp.stack([jnp.asarray(a, dt.dtype) for a in (_NODES, _WEIGHTS)], axis=1)
        zero = jnp.zeros_like(state)
        return lax.scan(stage, (zero, zero), table)[0][1]

    middle = t + dt / 2
    first = flow(t, begin)
    state = begin + first
    noise = noise_of(rule, model, middle, unravel(state))
    by_time, slope = jax.jacfwd(velocity, (0, 1))(middle, state)
    # Samples take steps of length 1/p, which lag behind the flow by half its acceleration.
    acceleration = by_time + slope @ velocity(middle, state)
    shift = (noise.next_drift - acceleration / 2) / model.float_p
    scatter = dt * shift + jnp.sqrt(dt / model.float_p) * noise.draw(z)
    state = ravel_pytree(_inside(unravel(state + scatter)))[0]
    change = walk.rest + (first + scatter + flow(middle, state))
    # Without the last column: the spike's mean entry does not move.
    fastest = jnp.max(jnp.sum(jnp.abs(slope[:, :-1]), axis=1))
    end, rest = fast_two_sum(begin, change)
    inside = _inside(unravel(end))
    # Where noise had to be brought back inside, nothing is left over.
    kept = ravel_pytree(inside)[0] == end
    return Walk(inside, jnp.where(kept, rest, 0), fastest)
