"""The time axis of a run: segments with one spike each, and the times to stop at.

A run is cut at the times at which the spike switches. Within a segment it is advanced from
stop to stop, and observed at those stops that are times of the config. Everything that
evolves implements `AbstractProcess`; `evolve` drives it through all segments inside of
compiled code, and `_batch` drives long simulations from the host, a few stops a call.

There is one rule for rounding. A time belongs to the segment that begins at a switch if it
is at least the time of the switch, up to four units in the last place. A time `t` is
`floor(n t)` steps, if there are `n` steps in a unit of time, and a product that misses a
whole number by as little is that number: `0.29 * 100` is 29, not 28.
"""

import abc
import functools
from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, PyTree, Shaped

from ._check import is_known
from ._config import Config
from ._model import SpikedModel, Uniform
from ._start import AbstractStart
from ._types import Count

MOST_STEPS = 2**31 - 2**20
"""The most steps that are counted: counters are 32-bit integers with a sign."""

_TOLERANCE_ULPS = 4


class Segment(eqx.Module):
    """The part of a run between two switches of the spike.

    **Arguments:**

    - `begin`, `end`: the times at which it begins and ends.
    - `ts`: all times of observation, moved into the interval from `begin` to `end`.
    - `observed`: which of these observations belong to this segment.
    """

    begin: Any
    end: Any
    ts: Shaped[Array | np.ndarray, " times"]
    observed: Bool[Array | np.ndarray, " times"]

    def in_steps(self, steps_per_time: Any, dtype: Any) -> "Segment":
        """Returns the same segment with times counted in steps (see `steps_at`)."""
        count = partial(steps_at, steps_per_time=steps_per_time, dtype=dtype)
        return Segment(count(self.begin), count(self.end), count(self.ts), self.observed)

    def own_stops(self) -> tuple[np.ndarray, np.ndarray]:
        """Returns the distinct times to stop at, the last of them the end, and the index of
        the stop for each of this segment's own observations. The times have to be known."""
        stops = np.append(self.ts[self.observed], self.end)
        stops, rows = np.unique(stops, return_inverse=True)
        return stops, rows[:-1]


def segments(config: Config, ts: Any = None, switches: Any = None) -> list[Segment]:
    """Returns the segments of a run.

    **Arguments:**

    - `config`: what is run.
    - `ts`, `switches`: the times of observation and of the switches, by default those of
      the config.

    If the times are known, the arrays are NumPy's and in double precision, and segments
    that begin after the last time are left out. If they are traced there is a segment for
    every spike, so that shapes are static.
    """
    ts = config.ts if ts is None else ts
    switches = config.model.changes() if switches is None else switches
    known = is_known(ts, switches) and isinstance(ts, np.ndarray)
    xp = np if known else jnp
    dtype = ts.dtype if known else jnp.result_type(float)
    ts = xp.asarray(ts, float if known else dtype)
    switches = [xp.asarray(t, ts.dtype) for t in switches]
    begins, last = [xp.zeros((), ts.dtype), *switches], ts[-1]
    tolerance = _TOLERANCE_ULPS * float(jnp.finfo(dtype).eps)
    after = [ts >= begin * (1 - tolerance) for begin in begins]
    after.append(xp.zeros(ts.shape, bool))
    run = []
    for i, begin in enumerate(begins):
        if known and not after[i].any():
            break
        end = switches[i] if i < len(switches) else last
        end = xp.where(end > last, last, end)
        end = xp.where(end < begin, begin, end)
        # Not `clip`, which halves the derivative of a time at the segment's own edge.
        inside = xp.where(ts < begin, begin, xp.where(ts > end, end, ts))
        run.append(Segment(begin, end, inside, after[i] & ~after[i + 1]))
    return run


def steps_at(ts: Any, steps_per_time: Any, dtype: Any = None) -> Any:
    """Returns how many steps are taken until each of the times, `floor(n t)`.

    **Arguments:**

    - `ts`: times; NumPy's give an `int64` array of NumPy's, others an `int32` array.
    - `steps_per_time`: `n`, the steps in a unit of time.
    - `dtype`: the precision in which the times were given, by default that of `ts`.
    """
    host = isinstance(ts, np.ndarray) and is_known(steps_per_time)
    xp = np if host else jnp
    eps = float(jnp.finfo(ts.dtype if dtype is None else dtype).eps)
    ts = ts.astype(float) if host else jnp.asarray(ts, jnp.result_type(float))
    per_time = steps_per_time if host else jnp.asarray(steps_per_time, ts.dtype)
    exact = xp.minimum(per_time * ts, 2.0**62 if host else 2.0**31 - 2.0**7)
    whole = xp.rint(exact)
    near = xp.abs(exact - whole) <= _TOLERANCE_ULPS * eps * exact
    return xp.where(near, whole, xp.floor(exact)).astype(np.int64 if host else np.int32)


class AbstractProcess(eqx.Module):
    """Something that evolves in time, in four methods.

    A time is macroscopic time for theories, and a number of steps for simulations.
    """

    @abc.abstractmethod
    def init(self, model: SpikedModel, start: AbstractStart) -> PyTree:
        """Returns the state at the beginning of the run."""

    @abc.abstractmethod
    def advance(self, model: SpikedModel, state: PyTree, begin: Any, end: Any) -> PyTree:
        """Returns the state at time `end`, given that at `begin` in the same segment.

        It does not depend on the model's spike (see `without_spike`).
        """

    @abc.abstractmethod
    def observe(self, state: PyTree, time: Any) -> tuple[PyTree, PyTree]:
        """Returns the state after an observation, and what is observed.

        An observation may change the state: a chain that is asked for the whole vector
        draws the part of it that its state leaves open.
        """

    @abc.abstractmethod
    def switch(
        self, old: SpikedModel, new: SpikedModel, state: PyTree, time: Any, phase: Count
    ) -> PyTree:
        """Returns the state after the switch from one model to another, which is number
        `phase` of the phases of the config's model."""


def without_spike(model: SpikedModel) -> SpikedModel:
    """Returns the model with a default spike.

    Between switches nothing depends on the law of the spike's entries. Without it, one
    compiled program serves all spikes.
    """
    return eqx.tree_at(lambda m: m.spike, model, Uniform())


def through_stops(
    process: AbstractProcess,
    model: SpikedModel,
    state: PyTree,
    begin: Array,
    stops: Shaped[Array, " stops"],
    is_observation: Bool[Array, " stops"],
) -> tuple[PyTree, PyTree]:
    """Returns the state at the last stop, and the observations at all stops.

    At a stop that is no observation the state goes on as if it had not been observed.
    """

    def to_stop(carry, stop_and_observation):
        time, state = carry
        stop, is_observation = stop_and_observation
        state = process.advance(model, state, time, stop)
        after, observation = process.observe(state, stop)
        if after is not state:
            state = select(is_observation, after, state)
        return (stop, state), observation

    (_, state), observations = lax.scan(to_stop, (begin, state), (stops, is_observation))
    return state, observations


class Evolution(eqx.Module):
    """What `evolve` returns.

    **Arguments:**

    - `observations`: what was observed, with an axis of times in front.
    - `begins`, `ends`: the states at the beginning and at the end of every segment.
    """

    observations: PyTree
    begins: list[PyTree]
    ends: list[PyTree]


def evolve(process: AbstractProcess, config: Config, segments: list[Segment]) -> Evolution:
    """Runs a process through all segments, by compiled programs that segments share."""
    models = config.model.phases()
    # Inside of a transformation the whole is compiled at once, and to compile parts of it
    # would only take longer to trace.
    is_traced = not is_known(*jax.tree.leaves((process, config)))
    functions = (_init, _switch, through_stops)
    init, switch, advance = functions if is_traced else map(_compiled, functions)
    state = init(process, models[0], config.start)
    begins, ends, observations = [], [], None
    for i, segment in enumerate(segments):
        begin, observed = jnp.asarray(segment.begin), jnp.asarray(segment.observed)
        if i > 0:
            phase = jnp.int32(i)
            state = switch(process, models[i - 1], models[i], state, begin, phase)
        begins.append(state)
        stops = jnp.append(jnp.asarray(segment.ts), jnp.asarray(segment.end))
        is_observation = jnp.append(observed, False)
        state, values = advance(
            process, without_spike(models[i]), state, begin, stops, is_observation
        )
        ends.append(state)
        values = jax.tree.map(lambda a: a[:-1], values)
        if observations is not None:
            values = jax.vmap(select)(observed, values, observations)
        observations = values
    return Evolution(observations, begins, ends)


@functools.cache
def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    return eqx.filter_jit(function)


def _init(process: AbstractProcess, model: SpikedModel, start: AbstractStart) -> PyTree:
    return process.init(model, start)


def _switch(process: AbstractProcess, *args: Any) -> PyTree:
    return process.switch(*args)


def select(condition: Bool[Array, ""], a: PyTree, b: PyTree) -> PyTree:
    """Returns the pytree `a` where the condition holds, else `b`."""
    return jax.tree.map(partial(jnp.where, condition), a, b)
