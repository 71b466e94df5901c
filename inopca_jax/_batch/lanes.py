"""Trials of many configs side by side.

A lane is one trial of one cell. Lanes go in tiles of a fixed width, a fixed number of tiles
one after another, by one program that every device has for itself. How a compiled program
rounds depends on its shape. So the shape follows from the backend and the structure of the
configs (their kinds, p, the number of times) alone, and calls with fewer lanes are padded.
(One program over a mesh of devices is compiled otherwise than over one, and rounds
differently.)
"""

import threading
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, PyTree

from .._config import Config
from .._engine import AbstractEngine, defaults
from .._types import TrialKey
from . import memory
from .calls import plan
from .driver import advance_trial, over_tiles, through


class Lanes:
    """How to run a fixed number of lanes of configs that are alike, on any device."""

    def __init__(self, engine: AbstractEngine, config: Config, key: TrialKey):
        self.engine = engine.suited(config)
        self.key, self.times = key, len(config.ts)
        p = config.model.p
        self.dtype = self.engine.precision()
        self.seen_dtype = jnp.result_type(float)
        x64 = jax.config.jax_enable_x64  # pyright: ignore
        self.x64 = bool(x64 or self.dtype == np.float64)
        self._one = jax.tree.map(_shape, self._parts(jax.tree.map(np.asarray, config)))
        self.tile = self.engine.tile()
        self.state_bytes = self._state_bytes()
        self.tiles = _tiles(self.tile * self.state_bytes)
        steps = self.engine.steps_per_call(p) // self.tiles
        self.phases = plan(config, self.engine.clock(p), max(1, steps))

    @property
    def lanes(self) -> int:
        return self.tiles * self.tile

    def run(
        self,
        configs: Config,
        cells: np.ndarray,
        trials: np.ndarray,
        device: Any,
        stopped: threading.Event,
    ) -> dict[str, np.ndarray]:
        """What is observed of each lane, of shape (lanes, times); its config is a row of
        `configs`, its key that of the sweep with its cell and its trial folded in."""
        # JAX's contexts belong to the thread that made them, and this may be any.
        with jax.default_device(device), jax.enable_x64(self.x64):
            padded = partial(_padded, lanes=self.lanes, tile=self.tile)
            parts = jax.tree.map(lambda x: jnp.asarray(padded(x)), self._parts(configs))
            numbers = (jnp.asarray(padded(x)) for x in (cells, trials))
            keys, states = _begin(self.engine, self.key, parts, *numbers)

            def change(i: int, k: np.int32, states: PyTree) -> PyTree:
                return _change(self.engine, parts, i, keys, states, k, np.int32(i))

            def advance(i: int, k: np.int32, states: PyTree, stops, looks):
                if stopped.is_set():
                    raise KeyboardInterrupt
                return _advance(self.engine, parts, i, keys, states, k, stops, looks)

            dtype = self.seen_dtype
            seen = through(self.phases, self.times, dtype, states, advance, change)
        return {name: values[: len(cells)] for name, values in seen.items()}

    def memory(self) -> int:
        """How many bytes a call takes, and what is observed by all calls; 0 if that is
        little for sure."""
        observed = 2 * self.lanes * self.times * self.seen_dtype.itemsize
        if memory.is_small(self.lanes, self.state_bytes) and observed < 2**28:
            return 0
        with jax.enable_x64(self.x64):
            shape = (self.tiles, self.tile)
            wide = lambda x: jax.ShapeDtypeStruct((*shape, *x.shape), x.dtype)
            parts = jax.tree.map(wide, self._one)
            number = jax.ShapeDtypeStruct(shape, np.int32)
            begin = lambda *args: _begin(self.engine, self.key, *args)
            keys, states = jax.eval_shape(begin, parts, number, number)
            first = self.phases[0]
            turns = (np.int32(0), first.stops[0], first.seen[0] >= 0)
            advance = lambda p, k, s: _advance(self.engine, p, 0, k, s, *turns)
            call = memory.call_bytes(advance, parts, keys, states)
        # The overlap and the norm; on an accelerator the host has them, too.
        return call + observed

    def _state_bytes(self) -> int:
        """Of one lane."""
        with jax.enable_x64(self.x64):
            begin = lambda parts: self.engine.begin(
                parts[0], parts[1][0], parts[2], self.key
            )
            return memory.bytes_of(jax.eval_shape(begin, self._one))

    def _parts(self, configs: Config) -> PyTree:
        parts = (configs.rule, configs.model.phases(), configs.start)
        is_real = lambda x: np.issubdtype(x.dtype, np.floating)
        return jax.tree.map(lambda x: x.astype(self.dtype) if is_real(x) else x, parts)


# On a CPU a unit is short enough to lose little, and long enough that its own costs are
# small; on an accelerator a tile is wide.
_MOST_TILES = 8

_MOST_STATE_BYTES = 2**26
"""Of states in one call: vectors of millions of numbers go in fewer tiles, to fit into the
memory. What a machine has of it must not decide this, for the shape decides the bits."""


def _tiles(tile_bytes: int) -> int:
    """How many tiles a call has, if the states of one take so much."""
    tiles = _MOST_TILES if defaults.on_cpu() else 1
    while tiles > 1 and tiles * tile_bytes > _MOST_STATE_BYTES:
        tiles //= 2
    return tiles


def _shape(x: np.ndarray) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(x.shape, x.dtype)


def _padded(rows: np.ndarray, lanes: int, tile: int) -> np.ndarray:
    """In tiles; those that are too few are filled up with the first."""
    rows = np.concatenate([rows, np.repeat(rows[:1], lanes - len(rows), axis=0)])
    return rows.reshape(-1, tile, *rows.shape[1:])


@eqx.filter_jit
def _begin(
    engine: AbstractEngine, key: TrialKey, parts: PyTree, cells: Array, trials: Array
) -> tuple[Array, PyTree]:
    def one_lane(parts: PyTree, cell: Array, trial: Array) -> tuple[TrialKey, PyTree]:
        rule, models, start = parts
        own = jr.fold_in(jr.fold_in(key, cell), trial)
        return own, engine.begin(rule, models[0], start, own)

    return over_tiles(one_lane)(parts, cells, trials)


@eqx.filter_jit
def _advance(
    engine: AbstractEngine,
    parts: PyTree,
    phase: int,
    keys: Array,
    states: PyTree,
    k: Any,
    stops: Any,
    looks: Any,
) -> tuple[PyTree, dict[str, Array]]:
    turns = (jnp.asarray(stops), jnp.asarray(looks))

    def one_lane(parts: PyTree, key: TrialKey, state: PyTree):
        rule, models, _ = parts
        return advance_trial(engine, rule, models[phase], jnp.asarray(k), turns, key, state)

    return over_tiles(one_lane)(parts, keys, states)


@eqx.filter_jit
def _change(
    engine: AbstractEngine,
    parts: PyTree,
    phase: int,
    keys: Array,
    states: PyTree,
    k: Any,
    number: Any,
) -> PyTree:
    def one_lane(parts: PyTree, key: TrialKey, state: PyTree) -> PyTree:
        _, models, _ = parts
        now = (jnp.asarray(k), jnp.asarray(number))
        return engine.change(models[phase - 1], models[phase], key, state, *now)

    return over_tiles(one_lane)(parts, keys, states)
