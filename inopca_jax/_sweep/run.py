"""The computation of a sweep, divided into units that run in parallel."""

import math
import os
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import equinox as eqx
import jax
import numpy as np
from tqdm import tqdm

from .._batch.batch import Batch, Observations, tiles_of_bytes
from .._batch.memory import gibibytes, host_room, room_for_calls
from .._components import omegas_in_force
from .._config import Config, require_single
from .._engine import AbstractEngine, defaults
from .._order_parameters import fluctuations, mean_field
from .grid import Grid, Group
from .points import Point, reach
from .statistics import fields, quantities, rows_of, summary, theory_fields


class Unit(NamedTuple):
    """Cells that one worker computes and that are stored in one chunk."""

    number: int
    cells: np.ndarray
    """The indices of the cells in the grid."""
    parts: list[tuple[int, np.ndarray]]
    """The same cells as pairs: the number of a group, and the rows of its cells in it."""


Keep: TypeAlias = Callable[[Unit, np.ndarray], None]
"""Stores the results of a unit."""

Submit: TypeAlias = Callable[[Unit, int], Future[np.ndarray]]
"""Starts the computation of a unit in the free slot of this number."""

_Running: TypeAlias = dict[Future[np.ndarray], tuple[Unit, int]]
"""The units that are being computed, each with its slot."""


class Bar:
    """A progress bar of cells, which also moves with the cells that are being computed.

    **Arguments:**

    - `cells`, `done`: how many cells there are, and how many are finished already.
    - `progress`: whether to show the bar.
    """

    def __init__(self, cells: int, done: int, progress: bool):
        self._bar = tqdm(
            total=cells,
            initial=done,
            unit=" cells",
            desc="sweep",
            disable=not progress,
            postfix="compiling" if done < cells else "",
            bar_format="{l_bar}{bar}| {n:.0f}/{total} [{elapsed}<{remaining}, "
            "{rate_fmt}{postfix}]",
        )
        self._lock = threading.Lock()  # the threads that compute advance the bar
        self._advanced: dict[int, float] = defaultdict(
            float
        )  # the cells of unfinished units

    def __enter__(self) -> "Bar":
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.close()

    def advance(self, unit: int, cells: float) -> None:
        """Counts cells, or a part of one, of a unit that is not finished."""
        with self._lock:
            self._bar.postfix = ""
            self._advanced[unit] += cells
            self._bar.update(cells)

    def finish(self, unit: int, cells: int) -> None:
        """Counts a unit as finished, with the number of its cells."""
        self.advance(unit, cells - self._advanced[unit])
        del self._advanced[unit]

    def set(self, done: int) -> None:
        """Sets the number of finished cells, some of which other processes computed."""
        with self._lock:
            self._bar.update(done - self._bar.n)

    def show_time(self) -> None:
        """Shows the elapsed time, also while nothing advances."""
        with self._lock:
            self._bar.refresh()


class Run:
    """The compiled programs and settings of a sweep."""

    def __init__(self, grid: Grid, engine, key, trials, observables, theory, interrupted):
        self.grid: Grid = grid
        self.trials: int = trials
        self.observables: tuple[str, ...] = observables
        self.theory: bool | str = theory
        self.theory_width: int = _theory_width() if theory else 0
        self.is_single: bool = grid.groups[0].config.is_single
        if theory and not self.is_single:
            _require_theory([group.config for group in grid.groups], theory)
        # Saved for the worker threads, which do not inherit JAX's contexts.
        self.x64: bool = jax.config.jax_enable_x64  # pyright: ignore
        self.devices: list[Any] = jax.local_devices()
        # On a CPU the small steps of a tile keep one core busy.
        cores = (os.cpu_count() or 1) if defaults.on_cpu() else 1
        self.workers: int = max(cores, len(self.devices))
        self.interrupted: threading.Event = interrupted  # set by Ctrl-C
        self.stopped = threading.Event()  # then no thread begins another call
        self.key: Any = key
        self.batches = [_batch(engine, group.config) for group in grid.groups]
        # A call has the same number of stops in all groups, so that groups that differ in
        # numbers only (in p, for instance) share one program.
        stops = min(batch.most_stops() for batch in self.batches)
        for batch in self.batches:
            batch.share_stops_per_call(stops)
        _require_memory(self.batches, room_for_calls(self.workers))
        self.cell_bytes = 8 * len(grid.config.ts) * len(self.fields())
        _require_room_for_results(self.cell_bytes, grid.size)
        self.order: np.ndarray = np.concatenate([group.cells for group in grid.groups])
        self.unit_cells: int = self._unit_cells()

    def _unit_cells(self) -> int:
        """Returns the number of cells of a unit.

        They are the cells of one call of a program, or of several calls if there would be
        too many units. The number depends on the sweep and not on the number of cores.
        """
        cells_per_group = len(self.grid.groups[0].cells)  # the same for all groups
        base = min(
            cells_per_group, *(max(1, batch.lanes // self.trials) for batch in self.batches)
        )
        calls = -(-len(self.order) // (base * _MOST_UNITS))
        return base * max(1, min(calls, _MOST_UNIT_BYTES // (base * self.cell_bytes)))

    def fields(self) -> list[str]:
        """Returns the names of the rows of a cell's results."""
        config = self.grid.groups[0].config
        simulated = fields(config, self.observables, self.trials)
        return [*simulated, *theory_fields(config, self._of_theory())]

    def _of_theory(self) -> tuple[str, ...]:
        """Returns the names of the quantities that theory predicts."""
        if not self.theory:
            return ()
        if not self.is_single:
            return ("overlaps", "norms", "cosines", "grassmann_distance", "captured_share")
        return ("q", "lam", "q_std", "lam_std")[: 4 if self.theory == "bars" else 2]

    @property
    def unit_count(self) -> int:
        return -(-len(self.order) // self.unit_cells)

    def shape(self) -> dict[str, Any]:
        """Returns the shapes of the compiled programs, which determine the bits."""
        return dict(
            tile=[batch.tile for batch in self.batches],
            tiles=[batch.tiles for batch in self.batches],
            theory=self.theory_width,
        )

    def unit(self, number: int) -> Unit:
        begin = number * self.unit_cells
        places = np.arange(begin, min(begin + self.unit_cells, len(self.order)))
        groups, rows = np.divmod(places, len(self.grid.groups[0].cells))
        parts = [(group, rows[groups == group]) for group in np.unique(groups).tolist()]
        return Unit(number, self.order[places], parts)

    def units(self, mask: np.ndarray) -> Iterator[Unit]:
        """Yields the units whose mask is true, in order."""
        return map(self.unit, np.flatnonzero(mask).tolist())

    def all(
        self, units: Iterator[Unit], keep: Keep, bar: Bar, submit: Submit | None = None
    ) -> int:
        """Computes and stores the units, and returns the number of units computed.

        Without `submit` they run on threads of this process, one for each core or device.
        """
        if submit is not None:
            return self._in_turn(submit, IN_FLIGHT, units, keep, bar)
        pool = ThreadPoolExecutor(self.workers)
        on_thread = lambda unit, slot: pool.submit(
            self.compute_unit,
            unit,
            self.devices[slot % len(self.devices)],
            partial(bar.advance, unit.number),
        )
        try:
            return self._in_turn(on_thread, self.workers, units, keep, bar)
        except BaseException:
            # Units that still run end before their next call of a compiled program.
            self.stopped.set()
            raise
        finally:
            _join(pool)

    def _in_turn(
        self, submit: Submit, slots: int, units: Iterator[Unit], keep: Keep, bar: Bar
    ) -> int:
        """Computes the units, at most `slots` at a time, and returns their number."""
        running: _Running = {}
        finished, free, end = 0, list(range(slots)), math.inf
        try:
            while True:
                if self.interrupted.is_set():
                    end = min(end, time.monotonic() + GRACE)
                    _cancel(running)
                    if not running or time.monotonic() > end:
                        raise KeyboardInterrupt
                    units = iter(())
                while free and (unit := next(units, None)) is not None:
                    slot = free.pop()
                    running[submit(unit, slot)] = (unit, slot)
                if not running:
                    return finished
                ended = self._keep_ended(running, keep, bar)
                finished, free = finished + len(ended), free + ended
        finally:
            _cancel(running)

    def _keep_ended(self, running: _Running, keep: Keep, bar: Bar) -> list[int]:
        """Stores the units that finish within 0.1 s and returns the slots that are free
        then."""
        slots: list[int] = []
        for future in wait(running, _POLL_SECONDS, FIRST_COMPLETED).done:
            unit, slot = running.pop(future)
            keep(unit, future.result())
            slots.append(slot)
            bar.finish(unit.number, len(unit.cells))
        bar.show_time()
        return slots

    def compute_unit(
        self,
        unit: Unit,
        device: Any,
        advance: Callable[[float], None] = lambda cells: None,
    ) -> np.ndarray:
        """Returns the results of a unit's cells, of shape (cells, fields, times). `advance`
        is called with the fraction of a cell, or several cells, that a call computed."""
        reach(Point.UNIT_BEGUN)
        results: list[np.ndarray] = []
        for number, rows in unit.parts:
            simulated = self._simulated(number, rows, device, advance)
            if self.theory:
                theory = self._theory(self.grid.groups[number], rows)
                simulated = np.concatenate([simulated, theory], axis=1)
            results.append(simulated)
        reach(Point.UNIT_COMPUTED)
        return np.concatenate(results)

    def _simulated(
        self, number: int, rows: np.ndarray, device: Any, advance: Callable[[float], None]
    ) -> np.ndarray:
        """Returns the statistics of some cells of a group, of shape (cells, fields, times).

        They are computed call by call, so that only the trials of one call are in memory.
        """
        group, batch = self.grid.groups[number], self.batches[number]
        cells_per_call = max(1, batch.lanes // self.trials)

        def raise_if_stopped() -> None:
            if self.stopped.is_set():
                raise KeyboardInterrupt

        def observe(rows: np.ndarray, trials: np.ndarray) -> Observations:
            configs, numbers = group.batched(rows), [group.cells[rows], trials]
            cells = len(rows) / self.trials
            # A run that is observed at its start alone has no steps.
            after_call = lambda steps: advance(cells * steps / max(batch.steps, 1))
            return batch.run(
                configs, self.key, numbers, device, raise_if_stopped, after_call
            )

        statistics: list[np.ndarray] = []
        for begin in range(0, len(rows), cells_per_call):
            cell_rows = rows[begin : begin + cells_per_call]
            lane_rows = np.repeat(cell_rows, self.trials)
            trials = np.tile(np.arange(self.trials, dtype=np.int32), len(cell_rows))
            observations = [
                observe(lane_rows[lanes], trials[lanes])
                for first in range(0, len(lane_rows), batch.lanes)
                for lanes in [slice(first, first + batch.lanes)]
            ]
            observed = {
                name: np.concatenate([o[name] for o in observations])
                for name in observations[0]
            }
            for i, row in enumerate(cell_rows):
                trials = slice(i * self.trials, (i + 1) * self.trials)
                omega = self._omegas(group, int(row))
                values = quantities({n: a[trials] for n, a in observed.items()}, omega)
                rows_of_cell = summary(values, omega, self.observables).values()
                statistics.append(np.stack([*rows_of_cell]))
        return np.stack(statistics)

    def _omegas(self, group: Group, row: int) -> np.ndarray:
        """Returns the signal-to-noise ratios in force in a cell, of shape (times, spikes);
        of one spike and one component they are not kept."""
        if self.is_single:
            return np.zeros((len(group.config.ts), 1))
        with jax.enable_x64(True):
            return np.asarray(omegas_in_force(group.config_of(row)))

    def _theory(self, group: Group, rows: np.ndarray) -> np.ndarray:
        """Returns the theory of neighbouring cells, of shape (cells, fields, times).

        The rounding of a path depends on how many cells are solved together and on its
        position among them. A group is therefore divided into fixed blocks, which do not
        depend on the units.
        """
        width, first, end = self.theory_width, rows[0], rows[-1] + 1
        begin = first // width * width
        blocks = [
            np.resize(np.arange(i, min(i + width, len(group.cells))), width)
            for i in range(begin, end, width)
        ]
        results = np.concatenate([self._theory_block(group, rows) for rows in blocks])
        return results[first - begin : end - begin]

    def _theory_block(self, group: Group, rows: np.ndarray) -> np.ndarray:
        if self.stopped.is_set():
            raise KeyboardInterrupt
        solve = fluctuations if self.theory == "bars" else mean_field
        with jax.enable_x64(self.x64):
            configs = jax.tree.map(jax.numpy.asarray, group.batched(rows))
            arrays, static = eqx.partition(configs, eqx.is_array)
            paths = jax.vmap(lambda a: solve(eqx.combine(a, static)))(arrays)
        cells = [jax.tree.map(lambda leaf, i=i: leaf[i], paths) for i in range(len(rows))]
        return np.stack([self._theory_rows(cell) for cell in cells])

    def _theory_rows(self, path: Any) -> np.ndarray:
        """Returns the rows of the theory of one cell, of shape (fields, times)."""
        values = {name: np.asarray(value) for name, value in vars(path).items()}
        if not self.is_single:
            observed = {n: values[n][None] for n in ("overlaps", "norms", "cosines")}
            found = quantities(observed, values["omega"])
            values = {name: value[0] for name, value in found.items()}
        named = [rows_of(name, values[name]) for name in self._of_theory()]
        return np.stack([row for rows in named for row in rows.values()])


GRACE = 2.0
"""For how many seconds after Ctrl-C units that are being computed may finish and be stored.
The others then stop after a call of a compiled program, which takes about a second at most:
the sweep ends within 5 seconds."""

_POLL_SECONDS = 0.1
"""The polling interval for Ctrl-C."""

IN_FLIGHT = 1024
"""The largest number of units that wait or run on an executor; more workers are idle."""

_MOST_UNITS = 2048
"""The largest number of units of a sweep, unless `_MOST_UNIT_BYTES` requires more. A large
sweep then has some thousand files, and a killed process loses about a thousandth of it."""

_MOST_UNIT_BYTES = 2**26
"""The largest size of a unit's results, which are in memory as a whole."""


def _cancel(running: _Running) -> None:
    """Cancels the units that have not started."""
    for future in list(running):
        if future.cancel():
            del running[future]


def _join(pool: ThreadPoolExecutor) -> None:
    """Waits for the threads, also if Ctrl-C is pressed again: a thread that is inside XLA
    when the interpreter exits crashes it."""
    try:
        pool.shutdown()
    except KeyboardInterrupt:
        _join(pool)
        raise


def _theory_width() -> int:
    """Returns the number of cells whose equations are solved together."""
    # On a CPU the time per cell hardly falls beyond 16, and few units have more cells. On
    # an accelerator, not yet measured: a step costs one launch at any width.
    return 16 if defaults.on_cpu() else 256


def _require_theory(configs: list[Config], theory: bool | str) -> None:
    """Refuses theory that configs of several components do not have, before anything is
    computed."""
    if theory == "bars":
        require_single(configs[0], "theory='bars'")
    structures = {jax.tree.structure(config): config for config in configs}
    for config in structures.values():
        eqx.filter_eval_shape(mean_field, config)


def _batch(engine: AbstractEngine, config: Config) -> Batch:
    """Returns a batch for configs of this structure. Its shape depends only on the backend
    and the structure, because the bits of the results depend on the shape."""
    one_tile = Batch(engine, config, 1, one_config=False)
    tiles = tiles_of_bytes(one_tile.tile * one_tile.state_bytes())
    return Batch(engine, config, tiles, one_config=False)


def _require_memory(batches: list[Batch], free: float) -> None:
    """Refuses programs that do not fit into the memory. The number of lanes is not reduced
    instead, because that would change the bits of the results."""
    for batch in batches:
        # What is observed; on an accelerator it is copied to the host.
        numbers = batch.observed_numbers() * batch.lanes * batch.times
        observed = numbers * batch.result_dtype.itemsize
        call = batch.call_bytes()
        needs = 0 if not call and observed < 2**28 else call + observed
        if needs > free:
            raise ValueError(
                f"p = {int(batch.config.model.p)} with {type(batch.engine).__name__} needs "
                f"{gibibytes(needs)} of memory for {batch.lanes} lanes, and "
                f"{gibibytes(free)} are free: use Chain(), fewer times, or a smaller p."
            )


def _require_room_for_results(cell_bytes: int, cells: int) -> None:
    """Refuses results that do not fit into the memory, where all of them are returned."""
    needs, available_bytes = cells * cell_bytes, host_room()
    if needs > available_bytes:
        raise ValueError(
            f"The results of {cells} cells take {gibibytes(needs)} of memory, and "
            f"{gibibytes(available_bytes)} are free: pass fewer observables, times or "
            "cells."
        )
