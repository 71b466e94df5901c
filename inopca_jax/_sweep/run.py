"""The work of a sweep in units, on every device of this machine."""

import math
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any, NamedTuple, TypeAlias

import equinox as eqx
import jax
import numpy as np
from tqdm import tqdm

from .._batch.lanes import Lanes
from .._batch.memory import gibibytes, host_room, room_for_calls
from .._engine import defaults
from .._order_parameters import fluctuations, mean_field
from .grid import Grid, Group
from .points import Point, reach
from .statistics import fields, summary


class Unit(NamedTuple):
    """Cells that are computed by one worker and kept in one chunk."""

    number: int
    cells: np.ndarray
    """In the grid."""
    parts: list[tuple[int, np.ndarray]]
    """The same cells by the number of their group and their rows in it."""


Keep: TypeAlias = Callable[[Unit, np.ndarray], None]
"""What is done with the results of a unit."""

Submit: TypeAlias = Callable[[Unit, int], Future[np.ndarray]]
"""Has a unit computed; the number is that of a free slot."""

_Running: TypeAlias = dict[Future[np.ndarray], tuple[Unit, int]]
"""The units under way, each with its slot."""


class Run:
    """What all units share."""

    def __init__(self, grid: Grid, engine, key, trials, observables, theory, interrupted):
        self.grid: Grid = grid
        self.trials: int = trials
        self.observables: tuple[str, ...] = observables
        self.theory: bool | str = theory
        self.theory_width: int = _theory_width() if theory else 0
        # What a thread inherits by hand: JAX's contexts belong to the one that made them.
        self.x64: bool = jax.config.jax_enable_x64  # pyright: ignore
        self.devices: list[Any] = jax.local_devices()
        # On a CPU the small steps of a tile keep one core busy.
        cores = (os.cpu_count() or 1) if defaults.on_cpu() else 1
        self.workers: int = max(cores, len(self.devices))
        self.interrupted: threading.Event = interrupted  # by Ctrl-C
        self.stopped = threading.Event()  # so that no thread begins another call
        self.programs = [Lanes(engine, group.config, key) for group in grid.groups]
        room = room_for_calls(self.workers)
        for group, lanes in zip(grid.groups, self.programs, strict=True):
            _require_room(lanes, group.config.model.p, room)
        self.cell_bytes = 8 * len(grid.config.ts) * len(self.fields())
        _require_room_for_results(self.cell_bytes, grid.size)
        self.order: np.ndarray = np.concatenate([group.cells for group in grid.groups])
        self.unit_cells: int = self._unit_cells()

    def _unit_cells(self) -> int:
        """How many cells a unit has: those of one call of a program, or of several if there
        would be too many units. It follows from the sweep, not from the machine."""
        each = len(self.grid.groups[0].cells)  # all groups have as many
        base = min(each, *(max(1, lanes.lanes // self.trials) for lanes in self.programs))
        calls = -(-len(self.order) // (base * _MOST_UNITS))
        return base * max(1, min(calls, _MOST_UNIT_BYTES // (base * self.cell_bytes)))

    def fields(self) -> list[str]:
        """The rows of a cell's results."""
        return [*fields(self.observables, self.trials), *self._theory_fields()]

    def _theory_fields(self) -> tuple[str, ...]:
        return _THEORY[: {False: 0, True: 2, "bars": 4}[self.theory]]

    @property
    def unit_count(self) -> int:
        return -(-len(self.order) // self.unit_cells)

    def shape(self) -> dict[str, Any]:
        """Of the compiled programs, which the bits of the results depend on."""
        return dict(
            tile=[lanes.tile for lanes in self.programs],
            tiles=[lanes.tiles for lanes in self.programs],
            theory=self.theory_width,
        )

    def bar(self, cells: int, done: int, progress: bool) -> tqdm:
        return tqdm(
            total=cells, initial=done, unit=" cells", desc="sweep", disable=not progress
        )

    def unit(self, number: int) -> Unit:
        begin = number * self.unit_cells
        end = min(begin + self.unit_cells, len(self.order))
        each = len(self.grid.groups[0].cells)
        parts = [
            (i, np.arange(max(begin - i * each, 0), min(end - i * each, each)))
            for i in range(begin // each, (end - 1) // each + 1)
        ]
        return Unit(number, self.order[begin:end], parts)

    def units(self, wanted: np.ndarray) -> Iterator[Unit]:
        """Those that are wanted, by their numbers; they are the same for everybody."""
        return map(self.unit, np.flatnonzero(wanted).tolist())

    def all(
        self, units: Iterator[Unit], keep: Keep, bar: tqdm, submit: Submit | None = None
    ) -> int:
        """Computes and keeps the units; how many there were. On this machine as many at a
        time as there are devices or cores, else as `submit` has them computed."""
        if submit is not None:
            return self._in_turn(submit, IN_FLIGHT, units, keep, bar)
        pool = ThreadPoolExecutor(self.workers)
        here = lambda unit, slot: pool.submit(
            self.one, unit, self.devices[slot % len(self.devices)]
        )
        try:
            return self._in_turn(here, self.workers, units, keep, bar)
        except BaseException:
            # What still runs ends at its next call of a compiled program.
            self.stopped.set()
            raise
        finally:
            _join(pool)

    def _in_turn(
        self, submit: Submit, slots: int, units: Iterator[Unit], keep: Keep, bar: tqdm
    ) -> int:
        """Keeps as many units under way as there are slots."""
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

    def _keep_ended(self, running: _Running, keep: Keep, bar: tqdm) -> list[int]:
        """Keeps the units that have ended, if any do in the next moment; the slots that are
        free then."""
        slots: list[int] = []
        for future in wait(running, _MOMENT, FIRST_COMPLETED).done:
            unit, slot = running.pop(future)
            keep(unit, future.result())
            slots.append(slot)
            bar.update(len(unit.cells))
        return slots

    def one(self, unit: Unit, device: Any) -> np.ndarray:
        """The results of its cells, of shape (cells, fields, times)."""
        reach(Point.UNIT_BEGUN)
        found: list[np.ndarray] = []
        for number, rows in unit.parts:
            simulated = self._simulated(number, rows, device)
            if self.theory:
                theory = self._theory(self.grid.groups[number], rows)
                simulated = np.concatenate([simulated, theory], axis=1)
            found.append(simulated)
        reach(Point.UNIT_COMPUTED)
        return np.concatenate(found)

    def _simulated(self, number: int, rows: np.ndarray, device: Any) -> np.ndarray:
        """The statistics of some cells of a group, one call of its program after the other,
        so that the trials of one call at a time are in memory."""
        group, lanes = self.grid.groups[number], self.programs[number]
        at_once = max(1, lanes.lanes // self.trials)
        found: list[np.ndarray] = []
        for begin in range(0, len(rows), at_once):
            some = rows[begin : begin + at_once]
            which = np.repeat(some, self.trials)
            cells = group.cells[which].astype(np.int32)
            trials = np.tile(np.arange(self.trials, dtype=np.int32), len(some))
            seen = []
            for first in range(0, len(which), lanes.lanes):
                here = slice(first, first + lanes.lanes)
                configs = group.batched(which[here])
                call = (configs, cells[here], trials[here], device, self.stopped)
                seen.append(lanes.run(*call))
            shape = (len(some), self.trials, -1)
            q, lam = (
                np.concatenate([x[n] for x in seen]).reshape(shape) for n in ("q", "lam")
            )
            found += [summary(*cell, self.observables) for cell in zip(q, lam, strict=True)]
        return np.stack(found)

    def _theory(self, group: Group, rows: np.ndarray) -> np.ndarray:
        """Of neighbouring cells. A path is rounded by how many are solved together, and by
        its place among them: so a group is cut into blocks, whatever its units are."""
        width, first, end = self.theory_width, rows[0], rows[-1] + 1
        begin = first // width * width
        blocks = [
            np.resize(np.arange(i, min(i + width, len(group.cells))), width)
            for i in range(begin, end, width)
        ]
        found = np.concatenate([self._theory_block(group, rows) for rows in blocks])
        return found[first - begin : end - begin]

    def _theory_block(self, group: Group, rows: np.ndarray) -> np.ndarray:
        if self.stopped.is_set():
            raise KeyboardInterrupt
        solve = fluctuations if self.theory == "bars" else mean_field
        with jax.enable_x64(self.x64):
            configs = jax.tree.map(jax.numpy.asarray, group.batched(rows))
            arrays, static = eqx.partition(configs, eqx.is_array)
            paths = jax.vmap(lambda a: solve(eqx.combine(a, static)))(arrays)
        names = (name.removesuffix("_theory") for name in self._theory_fields())
        found = [getattr(paths, name) for name in names]
        return np.stack(found, axis=1)


GRACE = 2.0
"""For how many seconds after Ctrl-C the units under way may still end and be kept. The
others then stop after a call of a compiled program, of about a second at most: within 5
seconds all has ended."""

_MOMENT = 0.1
"""How many seconds may pass until Ctrl-C is heard."""

IN_FLIGHT = 1024
"""How many units at most wait or run on an executor: enough for as many workers."""

_MOST_UNITS = 2048
"""Of a sweep: so that it has some thousand files however many cells, and who is killed
loses a thousandth of the work at most."""

_MOST_UNIT_BYTES = 2**26
"""Of a unit's results, which are in memory as a whole; even if there are more units."""


def _cancel(running: _Running) -> None:
    """Takes back the units that nobody has begun with."""
    for future in list(running):
        if future.cancel():
            del running[future]


def _join(pool: ThreadPoolExecutor) -> None:
    """Waits for the threads, also if Ctrl-C comes again: one that is still inside XLA when
    the interpreter exits crashes it."""
    try:
        pool.shutdown()
    except KeyboardInterrupt:
        _join(pool)
        raise


_THEORY = ("q_theory", "lam_theory", "q_std_theory", "lam_std_theory")


def _theory_width() -> int:
    """How many cells' equations are solved together."""
    # CPU: from 16 on a cell takes hardly less, and units seldom have more. Accelerator, not
    # yet measured: a step costs a launch, however wide.
    return 16 if defaults.on_cpu() else 256


def _require_room(lanes: Lanes, p: int, room: float) -> None:
    """Refuses a program that does not fit into the memory. To run it with fewer lanes would
    be another program, of other bits."""
    needs = lanes.memory()
    if needs > room:
        raise ValueError(
            f"p = {p} with {type(lanes.engine).__name__} needs {gibibytes(needs)} for "
            f"{lanes.lanes} lanes, and there are {gibibytes(room)}: use Chain(), fewer "
            "times, or a smaller p."
        )


def _require_room_for_results(cell_bytes: int, cells: int) -> None:
    """Refuses results that do not fit into the memory: they are returned as a whole."""
    needs, room = cells * cell_bytes, host_room()
    if needs > room:
        raise ValueError(
            f"The results of {cells} cells take {gibibytes(needs)}, and there are "
            f"{gibibytes(room)}: pass fewer observables, times or cells."
        )
