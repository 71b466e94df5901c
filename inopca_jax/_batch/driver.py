"""Runs an engine: trials in fixed tiles, steps in calls, tiles on all cores."""

import math
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Int32, PyTree
from tqdm import tqdm

from .._check import Checked, is_known, require_instance, require_key, require_whole
from .._config import Config, cast
from .._engine import defaults
from .._engine.base import AbstractEngine
from .._engine.chain import Chain
from .._interrupt import deferred_interrupt
from .._model import SpikedModel, Uniform
from .._order_parameters.initial import start_moments
from .._rule import AbstractRule
from .._start import AbstractStart, require_norm
from .._trajectory import Trajectory
from .._types import TrialKey
from . import memory
from .calls import Phase, plan


def simulate(
    config: Checked[Config],
    *,
    key: Checked[TrialKey],
    trials: Checked[int] = 20,
    engine: Checked[AbstractEngine | None] = None,
    progress: Any = False,
) -> Trajectory:
    """Monte Carlo trials of the config, observed after `floor(p t)` samples.

    `engine` is `Chain()` unless told otherwise. The same key gives the same bits,
    whatever the chunk, with or without the bar; trial `i` is the same however many are
    run. A trial that diverges is flagged by `Trajectory.finite` and hurts no other.
    Ctrl-C stops between two calls of the compiled program, each of about a second at most.
    """
    engine = Chain() if engine is None else engine
    trials = require_whole("trials", trials, 1, "pass a whole number of trials, at least 1")
    _require_runnable(config, engine, key)
    engine = engine.suited(config)
    p, tiles = config.model.p, -(-trials // engine.tile())
    together = defaults.tiles_per_call(tiles)
    phases = plan(config, engine.clock(p), engine.steps_per_call(p) // together)
    first_trials = range(0, trials, together * engine.tile())

    steps = int(phases[-1].stops[-1, -1])
    bar = tqdm(
        total=steps * trials,
        unit="step",
        unit_scale=True,
        desc=type(engine).__name__.lower(),
        disable=not progress,
    )
    with bar, deferred_interrupt() as interrupted:
        run = _Run(engine, config, phases, key, trials, together, bar, interrupted)
        run.require_room(len(first_trials))
        # On a CPU one tile's small steps keep one core busy.
        if defaults.on_cpu() and len(first_trials) > 1:
            rows = run.on_threads(first_trials)
        else:
            rows = [run.tiles_from(first) for first in first_trials]
    fields = {
        name: jnp.asarray(np.concatenate([row[name] for row in rows])) for name in rows[0]
    }
    return Trajectory(ts=config.ts, **fields)


# Made by the host, traced by JAX: an array either way.
Count: TypeAlias = Int32[Array | np.integer, ""]
Counts: TypeAlias = Int32[Array | np.ndarray, "..."]


def over_tiles(one_trial):
    """A tile at a time, the trials of a tile side by side: what a trial is computed
    with, and so how it is rounded, does not depend on how many there are."""
    return lambda *batched: lax.map(lambda tile: jax.vmap(one_trial)(*tile), batched)


def _require_runnable(config: Any, engine: Any, key: Any) -> None:
    require_instance("config", config, Config)
    require_instance("engine", engine, AbstractEngine)
    if not is_known(*jax.tree.leaves((config, key))):
        raise ValueError(
            "simulate got a traced config or key: its loop runs on the host, so it cannot "
            "be inside jit, vmap or grad. Call it once for each config."
        )
    require_key(key)


# What `_Run._trial_sizes` has found: to trace it again would take longer than a short run.
_TRIAL_SIZES: dict[Any, tuple[int, int]] = {}

# The programs that a process has compiled on threads. A hint: that one is missing, or
# JAX's cache cleared, costs time and nothing else.
_COMPILED: set = set()


class _Run:
    """One call of `simulate`: what all tiles share."""

    def __init__(self, engine, config, phases, key, trials, together, bar, interrupted):
        self.engine: AbstractEngine = engine
        self.phases: list[Phase] = phases
        self.key: TrialKey = key
        self.trials: int = trials
        self.together: int = together
        self.bar: tqdm = bar
        self.interrupted: threading.Event = interrupted
        self.failed = threading.Event()
        # What a thread inherits by hand: JAX's contexts belong to the one that made them.
        self.device: Any = jax.config.jax_default_device  # pyright: ignore
        self.dtype: Any = engine.precision()
        x64 = jax.config.jax_enable_x64  # pyright: ignore
        self.x64: bool = x64 or self.dtype == np.float64
        self.times = len(config.ts)
        self.seen_dtype: Any = jnp.result_type(float)
        parts = (config.rule, config.model.phases(), config.start)
        with jax.enable_x64(self.x64):
            self.rule, self.models, self.start = cast(parts, self.dtype)
            require_norm(start_moments(self.rule, self.models[0], self.start)[1])

    def require_room(self, calls: int) -> None:
        """Refuses trials that do not fit into the memory, before any is begun."""
        engine, rule, models = self.engine, self.rule, self.models
        shape = (self.together, engine.tile())
        lanes, call = math.prod(shape), 0
        with jax.default_device(self.device), jax.enable_x64(self.x64):
            state_bytes, seen = self._trial_sizes()
            if not memory.is_small(lanes, state_bytes):
                numbers = jax.ShapeDtypeStruct(shape, np.int32)
                begin = partial(_begin, engine, rule, models[0], self.start, self.key)
                first = self.phases[0]
                turns = (np.int32(0), first.stops[0], first.seen[0] >= 0)
                advance = lambda keys, states: _advance(
                    engine, rule, _unnamed(models[0]), keys, states, *turns
                )
                call = memory.call_bytes(advance, *jax.eval_shape(begin, numbers))
        workers = min(calls, os.cpu_count() or 1) if defaults.on_cpu() else 1
        room = memory.room_for_calls(workers)
        what = f"p = {self.models[0].p} with {type(self.engine).__name__}"
        if call > room:
            raise ValueError(
                f"{what} needs {memory.gibibytes(call)} for {lanes} trials at a time, and "
                f"there are {memory.gibibytes(room)}: lower p, look at fewer times, or use "
                "Chain() without snapshots, or Diffusion()."
            )
        # The rows of all calls, and their concatenation.
        needs = 2 * self.trials * self.times * seen * self.seen_dtype.itemsize
        room = memory.host_room()
        if needs > room:
            raise ValueError(
                f"trials = {self.trials} at {what} need {memory.gibibytes(needs)} for what "
                f"is observed at {self.times} times, and there are "
                f"{memory.gibibytes(room)}: pass fewer trials or times, or leave snapshots "
                "out."
            )

    def _trial_sizes(self) -> tuple[int, int]:
        """The bytes of a trial's state, and how many numbers are seen of it at a time."""
        engine, start, model = self.engine, self.start, self.models[0]
        kinds = (jax.tree.structure((engine, self.rule, model, start)), self.dtype)
        if kinds not in _TRIAL_SIZES:

            def begin_and_look(key: TrialKey):
                state = engine.begin(self.rule, model, start, key)
                return engine.observe(key, state, jnp.zeros((), jnp.int32))

            state, seen = jax.eval_shape(begin_and_look, self.key)
            count = sum(leaf.size for leaf in jax.tree.leaves(seen))
            _TRIAL_SIZES[kinds] = (memory.bytes_of(state), count)
        return _TRIAL_SIZES[kinds]

    def on_threads(self, first_trials: range) -> list[dict[str, np.ndarray]]:
        # If nothing is compiled yet the first goes ahead: threads would compile it once
        # each.
        kinds = jax.tree.structure((self.engine, self.rule, self.models, self.start))
        program = (kinds, self.together, self.phases[0].stops.shape[1], self.x64)
        ahead = 0 if program in _COMPILED else 1
        rows = [self.tiles_from(first) for first in first_trials[:ahead]]
        _COMPILED.add(program)
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            try:
                futures = [pool.submit(self.tiles_from, i) for i in first_trials[ahead:]]
                return rows + [future.result() for future in futures]
            except BaseException:
                self.failed.set()
                pool.shutdown(cancel_futures=True)
                raise

    def tiles_from(self, first: int) -> dict[str, np.ndarray]:
        """All observations of the tiles of trials that begin at `first`."""
        with jax.default_device(self.device), jax.enable_x64(self.x64):
            return self._tiles_from(first)

    def _tiles_from(self, first: int) -> dict[str, np.ndarray]:
        engine, rule, models = self.engine, self.rule, self.models
        shape = (self.together, engine.tile())
        trials = first + np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
        keys, states = _begin(engine, rule, models[0], self.start, self.key, trials)
        real_trials = min(trials.size, self.trials - first)

        def change(i: int, k: np.int32, states: PyTree) -> PyTree:
            return _change(engine, models[i - 1], models[i], keys, states, k, np.int32(i))

        def advance(i: int, k: np.int32, states: PyTree, stops, looks):
            if self.interrupted.is_set() or self.failed.is_set():
                raise KeyboardInterrupt
            got = _advance(engine, rule, _unnamed(models[i]), keys, states, k, stops, looks)
            jax.block_until_ready(got)
            self.bar.update((int(stops[-1]) - int(k)) * real_trials)
            return got

        seen = through(self.phases, self.times, self.seen_dtype, states, advance, change)
        return {name: values[:real_trials] for name, values in seen.items()}


def through(
    phases: list[Phase],
    times: int,
    dtype: Any,
    states: PyTree,
    advance: Callable[..., tuple[PyTree, dict[str, Array]]],
    change: Callable[..., PyTree],
) -> dict[str, np.ndarray]:
    """What is observed at all times when states, of shape (tiles, trials), go through
    all phases; a row for each, in `dtype`. What is too large for that is infinite."""
    out: dict[str, np.ndarray] = {}
    k = np.int32(0)
    for i, phase in enumerate(phases):
        states = change(i, k, states) if i > 0 else states
        for stops, seen in zip(phase.stops, phase.seen, strict=True):
            kept = seen >= 0
            states, observed = advance(i, k, states, stops, kept)
            for name, values in observed.items():
                values = np.asarray(values)
                values = values.reshape(-1, *values.shape[2:])
                if name not in out:
                    shape = (len(values), times, *values.shape[2:])
                    out[name] = np.empty(shape, dtype)
                with np.errstate(over="ignore"):
                    out[name][:, seen[kept]] = values[:, kept]
            k = np.int32(stops[-1])
    return out


def _unnamed(model: SpikedModel) -> SpikedModel:
    """With a spike like any other: what a step does not look at is not compiled in, and one
    program serves all."""
    return eqx.tree_at(lambda m: m.spike, model, Uniform())


@eqx.filter_jit
def _begin(
    engine: AbstractEngine,
    rule: AbstractRule,
    model: SpikedModel,
    start: AbstractStart,
    key: TrialKey,
    trials: Counts,
) -> tuple[Array, PyTree]:
    """The trials' keys, by their numbers alone, and their states."""

    def one_trial(i: Array) -> tuple[TrialKey, PyTree]:
        trial_key = jr.fold_in(key, i)
        return trial_key, engine.begin(rule, model, start, trial_key)

    return over_tiles(one_trial)(jnp.asarray(trials))


@eqx.filter_jit
def _advance(
    engine: AbstractEngine,
    rule: AbstractRule,
    model: SpikedModel,
    keys: Array,
    states: PyTree,
    k: Count,
    stops: Counts,
    looks: Bool[Array | np.ndarray, " stops"],
) -> tuple[PyTree, dict[str, Array]]:
    """Every trial from step `k` through all `stops`, with what is seen at each."""
    turns = (jnp.asarray(stops), jnp.asarray(looks))
    one_trial = partial(advance_trial, engine, rule, model, jnp.asarray(k), turns)
    return over_tiles(one_trial)(keys, states)


def advance_trial(
    engine: AbstractEngine,
    rule: AbstractRule,
    model: SpikedModel,
    k: Array,
    turns: tuple[Array, Array],
    key: TrialKey,
    state: PyTree,
) -> tuple[PyTree, dict[str, Array]]:
    """A trial from step `k` through all stops, with what is seen at each.

    Where nobody looks the state goes on as it is: a look may fix what a chain had left
    open, and extra stops must not.
    """

    def leg(carry, stop_and_look):
        k, state = carry
        stop, look = stop_and_look
        state = engine.advance(rule, model, key, state, k, stop)
        fixed, seen = engine.observe(key, state, stop)
        state = jax.tree.map(partial(jnp.where, look), fixed, state)
        return (stop, state), seen

    (_, state), seen = lax.scan(leg, (k, state), turns)
    return state, seen


@eqx.filter_jit
def _change(
    engine: AbstractEngine,
    old: SpikedModel,
    new: SpikedModel,
    keys: Array,
    states: PyTree,
    k: Count,
    phase: Count,
) -> PyTree:
    k, phase = jnp.asarray(k), jnp.asarray(phase)
    return over_tiles(lambda key, s: engine.change(old, new, key, s, k, phase))(
        keys, states
    )
