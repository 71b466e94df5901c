"""One trial as a pure function, to be jitted, vmapped, scanned over and differentiated."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from .._check import Checked, is_known, require_instance, require_key
from .._components import SeveralComponents, as_result
from .._config import Config
from .._model import SpikedModel
from .._numerics import cast
from .._rule import AbstractAlgorithm
from .._start import AbstractStart
from .._timeline import MOST_STEPS, AbstractProcess, Segment, evolve, segments
from .._trajectory import Snapshots, Trajectory
from .._types import Count, TrialKey
from .base import AbstractEngine, AbstractPreparedEngine
from .chain import Chain
from .update import Step


class Trial(AbstractProcess):
    """A trial as a process whose time is the number of steps."""

    engine: AbstractPreparedEngine
    rule: AbstractAlgorithm
    key: TrialKey

    def init(self, model: SpikedModel, start: AbstractStart) -> PyTree:
        return self.engine.init(self.rule, model, start, self.key)

    def advance(self, model: SpikedModel, state: PyTree, begin: Step, end: Step) -> PyTree:
        return self.engine.advance(self.rule, model, self.key, state, begin, end)

    def observe(self, state: PyTree, time: Step) -> tuple[PyTree, dict[str, Array]]:
        return self.engine.observe(self.key, state, time)

    def switch(
        self, old: SpikedModel, new: SpikedModel, state: PyTree, time: Step, phase: Count
    ) -> PyTree:
        return self.engine.switch(old, new, self.key, state, time, phase)


def simulate_trial(
    config: Checked[Config],
    *,
    key: Checked[TrialKey],
    engine: Checked[AbstractEngine | None] = None,
) -> Trajectory | Snapshots | SeveralComponents:
    """Returns one trial of a config: a pure function of arrays, for use inside of JAX.

    It may be jitted, vmapped over keys and configs, scanned over, and differentiated in
    forward mode (`jax.jvp`, `jax.jacfwd`) with respect to the leaves of the config. All
    steps are one call of a compiled program: for long runs, with progress and on all cores,
    use `simulate`.

    **Arguments:**

    - `config`: what to run; its leaves may be traced. `p` may be traced too, unless the
      engine holds vectors of p entries (`Stream`, snapshots, switches of the spike).
    - `key`: the trial's key. With `jax.random.fold_in(key, i)` this is trial `i` of
      `simulate(config, key=key)`, up to rounding.
    - `engine`: how to simulate, by default `Chain()`.

    **Returns:**

    A `Trajectory` with arrays of shape (times,), or `Snapshots` if the engine is asked for
    them; a `ComponentTrajectory` or `ComponentSnapshots` if there are several spikes or
    components. A trial that needs more than 2^31 steps is NaN, or, if that is known,
    refused. If the times or `p` are traced in float32, a run of more than a million samples
    may be observed one sample, or 4e-7 of its samples, away from `floor(p t)`.

    **Example:**

    ```pycon
    >>> import jax
    >>> import jax.random as jr
    >>> import inopca_jax as ino
    >>> config = ino.Config(model=ino.SpikedModel(p=100), ts=[0.0, 1.0, 2.0])
    >>> keys = jr.split(jr.key(0), 4)
    >>> runs = jax.vmap(lambda key: ino.simulate_trial(config, key=key))(keys)
    >>> runs.q.shape
    (4, 3)
    ```
    """
    engine = Chain() if engine is None else engine
    require_instance("config", config, Config)
    require_instance("engine", engine, AbstractEngine)
    if is_known(key):
        require_key(key)
    result_dtype = jnp.result_type(float)
    prepared = engine.prepare(config)
    x64 = jax.config.jax_enable_x64 or prepared.dtype == np.float64  # pyright: ignore
    with jax.enable_x64(bool(x64)):
        observations = _run(prepared, config, key, result_dtype)
    return as_result(config, observations)


def _run(
    prepared: AbstractPreparedEngine, config: Config, key: TrialKey, result_dtype: Any
) -> dict[str, Array]:
    steps_per_time = prepared.steps_per_time(config.model.p)
    require_countable(config, steps_per_time)
    in_steps = [as_steps(s, steps_per_time, config.ts) for s in segments(config)]
    config = cast(config, prepared.dtype)
    run = evolve(Trial(prepared, config.rule, key), config, in_steps)
    last = in_steps[-1].end
    is_counted = jnp.asarray(last) < MOST_STEPS
    return {
        name: jnp.where(is_counted, values, jnp.nan).astype(result_dtype)
        for name, values in run.observations.items()
    }


def as_steps(segment: Segment, steps_per_time: Any, ts: Any) -> Segment:
    """Returns the segment with times counted in steps, as 32-bit integers."""
    counted = segment.in_steps(steps_per_time, ts.dtype)
    to_int32 = lambda a: a.astype(np.int32)
    return Segment(
        to_int32(counted.begin),
        to_int32(counted.end),
        to_int32(counted.ts),
        segment.observed,
    )


def require_countable(config: Config, steps_per_time: Any) -> None:
    """Refuses a run of more steps than a counter holds."""
    end = config.ts[-1]
    if not is_known(end, steps_per_time) or steps_per_time * float(end) <= MOST_STEPS:
        return
    limit = 0.99 * MOST_STEPS  # so that the rounded numbers of the message are allowed
    raise ValueError(
        f"ts up to {float(end)} at p = {int(config.model.p)} is "
        f"{steps_per_time * float(end):.4g} steps, and step counters end at {MOST_STEPS}: "
        f"shorten ts to {limit / float(steps_per_time):.3g}, lower p to "
        f"{limit // float(end):.0f}, or use Diffusion(), whose steps do not depend on p "
        "(with t0 > 0, or a b0 of order p, if the schedule has one)."
    )
