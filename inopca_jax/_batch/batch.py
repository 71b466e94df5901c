"""The driver of all simulations: many trials, a few stops a call, on any device.

A lane is one trial of one config. Lanes go in tiles of a fixed width, and a call runs a
fixed number of tiles, one after another. How a compiled program rounds depends on its
shape, so the shape follows from the backend and the structure of the configs alone, and
calls with fewer lanes are padded. Every device runs the same program for itself: a program
over a mesh of devices is compiled differently, and rounds differently.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax import lax
from jaxtyping import Array, PyTree

from .._config import Config
from .._engine import AbstractEngine, defaults
from .._engine.base import AbstractPreparedEngine
from .._engine.trial import Trial
from .._numerics import cast
from .._timeline import through_stops, without_spike
from .._types import TrialKey
from . import memory
from .calls import Calls, most_stops, plan_calls

Observations = dict[str, np.ndarray]
"""The observed arrays by name, each of shape (lanes, times, ...)."""


class Batch:
    """How to run a fixed number of lanes of configs that have one structure and one p.

    **Arguments:**

    - `engine`: how to simulate.
    - `config`: one of the configs.
    - `tiles`: how many tiles a call has.
    - `one_config`: whether all lanes run `config` itself. Else `run` is given configs whose
      leaves have an axis of lanes in front.
    """

    def __init__(
        self, engine: AbstractEngine, config: Config, tiles: int, one_config: bool
    ):
        self.config, self.tiles, self.one_config = config, tiles, one_config
        self.engine: AbstractPreparedEngine = engine.prepare(config)
        self.tile: int = self.engine.tile
        self.times: int = len(config.ts)
        x64 = jax.config.jax_enable_x64  # pyright: ignore
        self.x64: bool = bool(x64 or self.engine.dtype == np.float64)
        self.result_dtype: Any = jnp.result_type(float)
        self.steps_per_call = max(1, self.engine.steps_per_call() // tiles)
        self._stops_per_call: int | None = None  # as many as fit
        self._calls: list[Calls] | None = None

    @property
    def lanes(self) -> int:
        return self.tiles * self.tile

    @property
    def calls(self) -> list[Calls]:
        if self._calls is None:
            self._calls = plan_calls(
                self.config, self.engine, self.steps_per_call, self._stops_per_call
            )
        return self._calls

    @property
    def steps(self) -> int:
        """The number of steps of a trial."""
        return int(self.calls[-1].stops[-1, -1])

    def most_stops(self) -> int:
        """Returns how many stops fit into a call."""
        return most_stops(self.config, self.engine, self.steps_per_call)

    def share_stops_per_call(self, stops_per_call: int) -> None:
        """Gives a call another number of stops, so that batches can share a program."""
        self._stops_per_call, self._calls = stops_per_call, None

    def run(
        self,
        configs: Config,
        key: TrialKey,
        numbers: Sequence[np.ndarray],
        device: Any,
        before_call: Callable[[], None],
        after_call: Callable[[int], None] = lambda steps: None,
    ) -> Observations:
        """Returns the observations of some lanes, at most as many as the batch has.

        **Arguments:**

        - `configs`: the config, or configs with an axis of lanes in front.
        - `key`: the key of all lanes.
        - `numbers`: arrays of shape (lanes,) that the key of a lane is folded with, one
          after another, such as the numbers of its cell and of its trial.
        - `device`: where to run, `None` for JAX's default.
        - `before_call`: is called before each call of a compiled program, and may raise.
        - `after_call`: is called after each, with the number of steps that it took.
        """
        count = len(numbers[0])
        # JAX's contexts belong to the thread that made them, and this may be any.
        with jax.default_device(device), jax.enable_x64(self.x64):
            rule, models, start = self._parts(configs)
            fill = partial(_fill_tiles, lanes=self.lanes, tile=self.tile)
            numbers = [fill(np.asarray(n, np.int32)) for n in numbers]
            shared = self.one_config
            keys, state = self._init((rule, models[0], start), key, numbers)
            observations: Observations = {}
            k = np.int32(0)
            for i, calls in enumerate(self.calls):
                if i > 0:
                    pair = (rule, models[i - 1], models[i])
                    phase = np.int32(i)
                    state = _switch(self.engine, shared, pair, keys, state, k, phase)
                parts = (rule, without_spike(models[i]))
                for stops, rows in zip(calls.stops, calls.rows, strict=True):
                    before_call()
                    state, values = _advance(
                        self.engine, shared, parts, keys, state, k, stops, rows >= 0
                    )
                    self._store(observations, values, rows, count)
                    after_call(int(stops[-1]) - int(k))
                    k = np.int32(stops[-1])
        return observations

    def _init(self, parts: PyTree, key: TrialKey, numbers: list[np.ndarray]) -> Any:
        """Returns the keys of all lanes, and their states at the beginning.

        Trials of one config come in batches of different numbers of tiles. A program for
        eight tiles rounds the start's vectors differently than one for one tile (measured),
        so that each tile is initialised by a call of its own.
        """
        if not self.one_config or self.tiles == 1:
            return _init(self.engine, self.one_config, parts, key, numbers)
        one_tile = lambda i: [n[i : i + 1] for n in numbers]
        tiles = [
            _init(self.engine, True, parts, key, one_tile(i)) for i in range(self.tiles)
        ]
        return jax.tree.map(lambda *rows: jnp.concatenate(rows), *tiles)

    def _store(
        self,
        observations: Observations,
        values: dict[str, Array],
        rows: np.ndarray,
        count: int,
    ) -> None:
        """Writes the values of one call to their rows. What is too large is infinite."""
        is_observation = rows >= 0
        for name, array in values.items():
            array = np.asarray(array)
            array = array.reshape(-1, *array.shape[2:])[:count]
            if name not in observations:
                shape = (count, self.times, *array.shape[2:])
                observations[name] = np.empty(shape, self.result_dtype)
            with np.errstate(over="ignore"):
                observations[name][:, rows[is_observation]] = array[:, is_observation]

    def _parts(self, configs: Config) -> PyTree:
        parts = (configs.rule, configs.model.phases(), configs.start)
        if not self.one_config:
            fill = partial(_fill_tiles, lanes=self.lanes, tile=self.tile)
            parts = jax.tree.map(fill, parts)
        return cast(parts, self.engine.dtype)

    def state_bytes(self) -> int:
        """Returns the bytes of the state of one lane."""
        return self._trial_sizes()[0]

    def observed_numbers(self) -> int:
        """Returns how many numbers are observed of one lane at one time."""
        return self._trial_sizes()[1]

    def _trial_sizes(self) -> tuple[int, int]:
        parts = (self.config.rule, self.config.model.phases()[0], self.config.start)
        structure = (jax.tree.structure((self.engine, parts)), self.engine.dtype)
        if structure not in _TRIAL_SIZES:

            def init_and_observe(engine, parts, key):
                rule, model, start = parts
                trial = Trial(engine, rule, key)
                return trial.observe(trial.init(model, start), jnp.zeros((), jnp.int32))

            with jax.enable_x64(self.x64):
                parts = cast(parts, self.engine.dtype)
                key = jax.eval_shape(lambda: jax.random.key(0))
                state, values = eqx.filter_eval_shape(
                    init_and_observe, self.engine, parts, key
                )
            count = sum(leaf.size for leaf in jax.tree.leaves(values))
            _TRIAL_SIZES[structure] = (memory.bytes_of(state), count)
        return _TRIAL_SIZES[structure]

    def call_bytes(self) -> int:
        """Returns the bytes that a call takes; 0 if that is certainly little.

        To know it takes a compilation.
        """
        if memory.is_small(self.lanes, self.state_bytes()):
            return 0
        shape = (self.tiles, self.tile)
        with jax.enable_x64(self.x64):
            wide = lambda x: jnp.broadcast_to(x, (self.lanes, *np.shape(x)))
            configs = self.config if self.one_config else jax.tree.map(wide, self.config)
            rule, models, start = self._parts(configs)
            init = partial(_init, self.engine, self.one_config, (rule, models[0], start))
            number = jax.ShapeDtypeStruct(shape, np.int32)
            key = jax.eval_shape(lambda: jax.random.key(0))
            keys, state = eqx.filter_eval_shape(init, key, [number])
            first = self.calls[0]
            call = partial(
                _advance, self.engine, self.one_config, (rule, without_spike(models[0]))
            )
            stops = (np.int32(0), first.stops[0], first.rows[0] >= 0)
            return memory.call_bytes(
                lambda keys, state: call(keys, state, *stops), keys, state
            )


_MOST_TILES, _MOST_STATE_BYTES = 8, 2**26


def tiles_of_bytes(tile_bytes: int) -> int:
    """Returns how many tiles a call has, given the bytes of the states of one tile.

    On a CPU eight: a call is short enough to be stopped, and long enough that its overhead
    is small. Vectors of millions of numbers go in fewer tiles. The memory of the machine
    must not decide this, because the shape determines the bits.
    """
    tiles = _MOST_TILES if defaults.on_cpu() else 1
    while tiles > 1 and tiles * tile_bytes > _MOST_STATE_BYTES:
        tiles //= 2
    return tiles


_TRIAL_SIZES: dict[Any, tuple[int, int]] = {}
"""What `Batch._trial_sizes` has computed: to trace it again would take longer than a short
run."""


def _fill_tiles(lanes_first: Any, lanes: int, tile: int) -> Any:
    """Returns the rows in tiles; missing ones are copies of the first."""
    missing = lanes - len(lanes_first)
    index = np.concatenate([np.arange(len(lanes_first)), np.zeros(missing, int)])
    return lanes_first[index.reshape(-1, tile)]


def _over_lanes(one_lane: Callable, shared: bool, parts: PyTree, *lanes: Any) -> Any:
    """Calls a function for every lane: the lanes of a tile side by side, tiles one after
    another, so that a lane is rounded the same however many there are."""
    if shared:
        one_lane, tiles = partial(one_lane, parts), lanes
    else:
        tiles = (parts, *lanes)
    return lax.map(lambda tile: jax.vmap(one_lane)(*tile), tiles)


@eqx.filter_jit
def _init(
    engine: Any, shared: Any, parts: PyTree, key: TrialKey, numbers: list[Any]
) -> tuple[Array, PyTree]:
    def one_lane(parts, *numbers):
        rule, model, start = parts
        lane_key = key
        for number in numbers:
            lane_key = jr.fold_in(lane_key, number)
        return lane_key, Trial(engine, rule, lane_key).init(model, start)

    return _over_lanes(one_lane, shared, parts, *map(jnp.asarray, numbers))


@eqx.filter_jit
def _advance(
    engine: Any,
    shared: Any,
    parts: PyTree,
    keys: Array,
    state: PyTree,
    k: Any,
    stops: Any,
    is_observation: Any,
) -> tuple[PyTree, dict[str, Array]]:
    begin, stops, is_observation = map(jnp.asarray, (k, stops, is_observation))

    def one_lane(parts, key, state):
        rule, model = parts
        trial = Trial(engine, rule, key)
        return through_stops(trial, model, state, begin, stops, is_observation)

    return _over_lanes(one_lane, shared, parts, keys, state)


@eqx.filter_jit
def _switch(
    engine: Any,
    shared: Any,
    parts: PyTree,
    keys: Array,
    state: PyTree,
    k: Any,
    phase: Any,
) -> PyTree:
    k, phase = jnp.asarray(k), jnp.asarray(phase)

    def one_lane(parts, key, state):
        rule, old, new = parts
        return Trial(engine, rule, key).switch(old, new, state, k, phase)

    return _over_lanes(one_lane, shared, parts, keys, state)
