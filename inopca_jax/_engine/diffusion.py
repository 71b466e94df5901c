"""The chain in macroscopic steps: a simulator whose cost does not depend on p."""

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax import lax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from .._check import as_dtype, as_number, is_known, positive, require
from .._config import Config, require_single
from .._model import SpikedModel
from .._noise import normals, words_of
from .._numerics import fast_two_sum
from .._order_parameters.increments import (
    TURNING_DIRECTIONS,
    OrderParameters,
    drift,
    sample_noise,
)
from .._order_parameters.initial import (
    GaussianApproximation,
    first_step_size,
    start_law,
    switch_law,
)
from .._order_parameters.limit import COARSE
from .._rule import AbstractAlgorithm, AbstractRule
from .._start import AbstractStart
from .._timeline import MOST_STEPS
from .._types import Count, Real, TrialKey, Words
from . import defaults
from .base import NOISE, START, SWITCH, AbstractEngine, AbstractPreparedEngine
from .update import Step

_LONGEST = 1e6  # so that a thousandth of a unit of time can be resolved
_NORMALS = 2 * len(COARSE.values) + 1
# The longest step, over the time in which the fastest motion grows or decays e-fold.
_LONGEST_STEP = 0.5


class Diffusion(AbstractEngine):
    """The law of the chain to leading order in 1/p, in steps of macroscopic time.

    A step of length `dt` stands for `p dt` samples. It takes their mean by the ODE of the
    mean field (Runge-Kutta, in two halves), and in between their scatter and the correction
    of the mean of order 1/p. The error of a step is of order `dt^4` in the mean
    (independent of p) and of order `dt^2/p` in the scatter; where the mean field changes
    too fast for that, the steps of a trial are shorter. Cold starts and switches of the
    spike are allowed: the noise carries a run away from `q = 0`. For `p` below a hundred,
    and for algorithms that forget their start at once, use `Chain`. An observation at a
    time that is no multiple of `dt` cuts a step, and so changes the last digits after it.

    **Arguments:**

    - `dt`: the longest step of macroscopic time.
    - `dtype`: the precision, by default float32, or float64 if JAX's x64 mode is on. The
      rounding error of the state is carried along, so that small steps add up.

    **Example:**

    ```pycon
    >>> import jax.random as jr
    >>> import inopca_jax as ino
    >>> large = ino.Config(model=ino.SpikedModel(p=10**9), ts=[0.0, 1.0, 2.0])
    >>> runs = ino.simulate(large, key=jr.key(0), trials=4, engine=ino.Diffusion())
    >>> bool(abs(runs.mean().q[-1] - ino.mean_field(large).q[-1]) < 1e-3)
    True
    ```
    """

    dt: Real = eqx.field(converter=as_number("dt"), default=0.1)
    dtype: Any = eqx.field(static=True, converter=as_dtype, default=None)

    def __check_init__(self):
        require("dt", self.dt, positive, "pass a positive step of macroscopic time")

    def prepare(self, config: Config) -> "PreparedDiffusion":
        require_single(config, "Diffusion")
        p, end = config.model.p, config.ts[-1]
        _require_valid(config)
        # Time is counted in samples, or in powers of two of a unit where these would be too
        # many for a counter.
        is_host = is_known(p, end, self.dt)
        xp = np if is_host else jnp
        end = xp.maximum(xp.asarray(end, float), 1e-30)
        coarse = 2.0 ** xp.floor(xp.log2(MOST_STEPS / end))
        ticks = xp.where(p * end <= MOST_STEPS, p, coarse)
        stride = xp.clip(xp.rint(xp.asarray(self.dt, float) * ticks), 1, MOST_STEPS)
        return PreparedDiffusion(
            dtype=jnp.result_type(float) if self.dtype is None else jnp.dtype(self.dtype),
            tile=defaults.chain_tile(),
            ticks=ticks,
            stride=stride.astype(np.int32),
        )


def _require_valid(config: Config) -> None:
    if is_known(config.model.p) and config.model.p < 100:
        raise ValueError(
            f"p = {int(config.model.p)} is not allowed with Diffusion, which is "
            "correct to leading order in 1/p: use Chain(), which is exact."
        )
    if is_known(config.ts) and config.ts[-1] > _LONGEST:
        raise ValueError(
            f"ts up to {float(config.ts[-1])} is not allowed: time is counted up to "
            f"{_LONGEST:g}. Shorten ts."
        )
    if not is_known(*jax.tree.leaves((config.rule, config.model, config.start))):
        return
    step_size = first_step_size(config)
    if not step_size <= 0.1:
        raise ValueError(
            "Diffusion is not allowed here: the first sample moves the estimate by "
            f"{math.sqrt(step_size):.2g} times its length, which is no small step. Use "
            f"Chain(), for at most {MOST_STEPS} samples, a b0 of order p, t0 > 0 or a "
            "larger lam0."
        )


class DiffusionState(eqx.Module):
    """The state of a trial.

    **Arguments:**

    - `now`: the order parameters.
    - `error`: their rounding errors until now, in the order of `ravel_pytree`.
    - `fastest`: a bound of the rates at which they move.
    """

    now: OrderParameters
    error: Float[Array, " state"]
    fastest: Real

    @staticmethod
    def begin(now: OrderParameters) -> "DiffusionState":
        """Returns the state at the beginning of a segment. The rates are known after the
        first step, of one tick."""
        error = jnp.zeros_like(ravel_pytree(now)[0])
        return DiffusionState(now, error, jnp.full_like(now.n, jnp.inf))


class PreparedDiffusion(AbstractPreparedEngine):
    """A `Diffusion` for one dimension and one length of time.

    A unit of time has `ticks` ticks, and a step `stride` of them at most.
    """

    dtype: Any = eqx.field(static=True)
    tile: int = eqx.field(static=True)
    ticks: Any
    stride: Any

    def steps_per_time(self, p: Any) -> Any:
        return self.ticks

    def steps_per_call(self) -> int:
        # Whole steps, also of an eighth of it: that a call ends must not cut one.
        return int(self.stride) * defaults.steps_per_call(cost=100_000)

    def init(
        self,
        rule: AbstractAlgorithm,
        model: SpikedModel,
        start: AbstractStart,
        key: TrialKey,
    ) -> DiffusionState:
        assert isinstance(rule, AbstractRule)
        law, words = start_law(rule, model, start), words_of(jr.fold_in(key, START))
        return DiffusionState.begin(_draw(law, words, model.p))

    def advance(
        self,
        rule: AbstractAlgorithm,
        model: SpikedModel,
        key: TrialKey,
        state: DiffusionState,
        k: Step,
        stop: Step,
    ) -> DiffusionState:
        assert isinstance(rule, AbstractRule)
        words, dtype = words_of(jr.fold_in(key, NOISE)), state.fastest.dtype
        stride, ticks = jnp.asarray(self.stride), jnp.asarray(self.ticks, dtype)
        count = _NORMALS + (0 if model.turning is None else TURNING_DIRECTIONS)

        def one_step(carry: tuple[Step, DiffusionState]) -> tuple[Step, DiffusionState]:
            k, state = carry
            # No longer than the fastest motion allows, nor shorter than a tick. If that is
            # not a number, the trial has diverged, and any step will do.
            longest = stride.astype(dtype)
            allowed = ticks * _LONGEST_STEP / state.fastest
            allowed = jnp.where(allowed < longest, allowed, longest).astype(k.dtype)
            length = jnp.minimum(stride - k % stride, jnp.maximum(allowed, 1))
            length = jnp.minimum(length, stop - k)
            t, dt = (x.astype(dtype) / ticks for x in (k, length))
            z = _normals(words, k.astype(jnp.uint32), count).astype(dtype)
            return k + length, _step(rule, model, t, dt, state, z)

        return lax.while_loop(lambda carry: carry[0] < stop, one_step, (k, state))[1]

    def observe(
        self, key: TrialKey, state: DiffusionState, k: Step
    ) -> tuple[DiffusionState, dict[str, Array]]:
        return state, dict(q=state.now.q(), lam=state.now.lam())

    def switch(
        self,
        old: SpikedModel,
        new: SpikedModel,
        key: TrialKey,
        state: DiffusionState,
        k: Step,
        phase: Count,
    ) -> DiffusionState:
        words = words_of(jr.fold_in(jr.fold_in(key, SWITCH), phase))
        return DiffusionState.begin(_draw(switch_law(new.spike, state.now), words, new.p))


def _normals(words: Words, c0: Array, count: int) -> Float[Array, " count"]:
    """Returns `count` standard normals for one counter."""
    lanes = jnp.arange(-(-count // 2), dtype=jnp.uint32)
    pairs = normals(words, jnp.full_like(lanes, c0), lanes)
    return jnp.concatenate(pairs)[:count]


def _draw(law: GaussianApproximation, words: Words, p: Any) -> OrderParameters:
    """Returns order parameters drawn from a normal law."""
    mean, unravel = ravel_pytree(law.mean)
    z = _normals(words, jnp.zeros((), jnp.uint32), mean.size).astype(mean.dtype)
    scatter = _cholesky(law.covariance) @ z / jnp.sqrt(p)
    return _possible(unravel(mean + law.shift / p + scatter))


def _cholesky(covariance: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """Returns Cholesky's factor of a matrix that may be singular, with zeros where it
    is."""
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


def _possible(now: OrderParameters) -> OrderParameters:
    """Returns the order parameters, moved into the range that those of vectors have if the
    noise at a small p has led out of it."""
    n = jnp.abs(now.n)
    lam = jnp.sqrt(n)
    m, mean_entry = (jnp.clip(x, -lam, lam) for x in (now.m, now.mean_entry))
    return OrderParameters(m, mean_entry, n, now.schedule, now.spike_mean)


_NODES, _WEIGHTS = (0.0, 0.5, 0.5, 1.0), (1 / 6, 1 / 3, 1 / 3, 1 / 6)


def _step(
    rule: AbstractRule,
    model: SpikedModel,
    t: Real,
    dt: Real,
    state: DiffusionState,
    z: Float[Array, " normals"],
) -> DiffusionState:
    """Returns the state after a step: half of the flow, all of the scatter, the other half.

    The splitting is symmetric and so of second order; the flow itself is of the fourth.
    """
    begin, unravel = ravel_pytree(state.now)

    def velocity(t: Real, now: Array) -> Array:
        return ravel_pytree(drift(rule, model, t, unravel(now)))[0]

    def flow(t: Real, now: Array) -> Array:
        """Returns the change over half a step by the four stages of Runge and Kutta. As a
        loop they take a quarter of the time to compile."""

        def stage(carry: tuple[Array, Array], table: Array):
            before, total = carry
            part, weight = dt / 2 * table
            speed = velocity(t + part, now + part * before)
            return (speed, total + weight * speed), None

        table = jnp.stack([jnp.asarray(a, dt.dtype) for a in (_NODES, _WEIGHTS)], axis=1)
        zero = jnp.zeros_like(now)
        unroll = defaults.unroll(len(table), 4)
        return lax.scan(stage, (zero, zero), table, unroll=unroll)[0][1]

    middle = t + dt / 2
    first = flow(t, begin)
    now = begin + first
    noise = sample_noise(rule, model, middle, unravel(now))
    by_time, slope = jax.jacfwd(velocity, (0, 1))(middle, now)
    # Samples take steps of length 1/p, which lag behind the flow by half its acceleration.
    acceleration = by_time + slope @ velocity(middle, now)
    shift = (noise.next_drift - acceleration / 2) / model.p
    scatter = dt * shift + jnp.sqrt(dt / model.p) * noise.draw(z)
    now = ravel_pytree(_possible(unravel(now + scatter)))[0]
    change = state.error + (first + scatter + flow(middle, now))
    # Without the last column: the spike's mean entry does not move.
    fastest = jnp.max(jnp.sum(jnp.abs(slope[:, :-1]), axis=1))
    end, error = fast_two_sum(begin, change)
    possible = _possible(unravel(end))
    # Where noise had to be corrected, the rounding error is meaningless.
    is_kept = ravel_pytree(possible)[0] == end
    return DiffusionState(possible, jnp.where(is_kept, error, 0), fastest)
