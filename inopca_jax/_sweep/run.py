"""The work of a sweep in units, on every device of this machine."""

import contextlib
import math
import os
import re
import threading
import time
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import equinox as eqx
import jax
import numpy as np
from tqdm import tqdm

from .._engine import defaults
from .._theory import fluctuations, mean_field
from .grid import Grid, Group
from .lanes import Lanes
from .points import Point, reach
from .statistics import summary


class Unit(NamedTuple):
    """Cells of a group that are computed together, and those of them that are wanted.

    All are computed, whatever is wanted: it takes as long, as a program's lanes are padded,
    and so every call has the same inputs however often a sweep was stopped.
    """

    name: str
    group: int
    rows: np.ndarray
    """In the group, of all its cells."""
    wanted: np.ndarray
    """Which of the rows are."""
    cells: np.ndarray
    """In the grid, of those that are wanted."""


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
        room = _room(self.workers)
        for group, lanes in zip(grid.groups, self.programs, strict=True):
            _require_room(lanes, group.config.model.p, room)

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

    def units(self, wanted: np.ndarray) -> Iterator[Unit]:
        """Those in which cells are wanted; they are the same for everybody."""
        for number, (group, lanes) in enumerate(
            zip(self.grid.groups, self.programs, strict=True)
        ):
            size = max(1, lanes.lanes // self.trials)
            for begin in range(0, len(group.cells), size):
                rows = np.arange(begin, min(begin + size, len(group.cells)))
                mine = wanted[group.cells[rows]]
                if mine.any():
                    cells = group.cells[rows[mine]]
                    yield Unit(f"{number}-{begin}", number, rows, mine, cells)

    def all(self, units: Iterator[Unit], keep: Any, bar: tqdm) -> int:
        """Computes and keeps the units, as many at a time as there are devices or cores;
        how many there were."""
        pool = ThreadPoolExecutor(self.workers)
        try:
            return self._in_turn(pool, units, keep, bar)
        except BaseException:
            # What still runs ends at its next call of a compiled program.
            self.stopped.set()
            raise
        finally:
            _join(pool)

    def _in_turn(self, pool: ThreadPoolExecutor, units, keep, bar) -> int:
        running: _Running = {}
        finished, free, end = 0, list(range(self.workers)), math.inf
        while True:
            if self.interrupted.is_set():
                end = min(end, time.monotonic() + GRACE)
                if not running or time.monotonic() > end:
                    raise KeyboardInterrupt
                units = iter(())
            while free and (unit := next(units, None)) is not None:
                slot = free.pop()
                device = self.devices[slot % len(self.devices)]
                running[pool.submit(self.one, unit, device)] = (unit, slot)
            if not running:
                return finished
            slots = self._keep_ended(running, keep, bar)
            finished, free = finished + len(slots), free + slots

    def _keep_ended(self, running: "_Running", keep: Any, bar: tqdm) -> list[int]:
        """Keeps the units that have ended, if any do in the next moment; the slots that are
        free then."""
        slots: list[int] = []
        for future in wait(running, _MOMENT, FIRST_COMPLETED).done:
            unit, slot = running.pop(future)
            keep(unit, future.result())
            slots.append(slot)
            bar.update(len(unit.cells))
        return slots

    def one(self, unit: Unit, device: Any) -> list[np.ndarray]:
        """The results of its wanted cells."""
        reach(Point.UNIT_BEGUN)
        group, lanes = self.grid.groups[unit.group], self.programs[unit.group]
        rows = np.repeat(unit.rows, self.trials)
        cells = group.cells[rows].astype(np.int32)
        trials = np.tile(np.arange(self.trials, dtype=np.int32), len(unit.rows))
        parts = []
        for begin in range(0, len(rows), lanes.lanes):
            some = slice(begin, begin + lanes.lanes)
            configs = group.batched(rows[some])
            which = (cells[some], trials[some])
            parts.append(lanes.run(configs, *which, device, self.stopped))
        shape = (len(unit.rows), self.trials, -1)
        q, lam = (
            np.concatenate([x[n] for x in parts]).reshape(shape) for n in ("q", "lam")
        )
        wanted = np.flatnonzero(unit.wanted)
        found = [summary(q[i], lam[i], self.observables) for i in wanted]
        if self.theory:
            theory = self._theory(group, unit)
            rows = theory[unit.wanted]
            found = [np.concatenate(both) for both in zip(found, rows, strict=True)]
        reach(Point.UNIT_COMPUTED)
        return found

    def _theory(self, group: Group, unit: Unit) -> np.ndarray:
        """Of all cells of the unit. A path is rounded by how many are solved together, and
        by its place among them: so a group is cut into blocks, whatever its units are."""
        width, first, end = self.theory_width, unit.rows[0], unit.rows[-1] + 1
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
        names = THEORY[: 4 if self.theory == "bars" else 2]
        with jax.enable_x64(self.x64):
            configs = jax.tree.map(jax.numpy.asarray, group.batched(rows))
            arrays, static = eqx.partition(configs, eqx.is_array)
            paths = jax.vmap(lambda a: solve(eqx.combine(a, static)))(arrays)
        found = [getattr(paths, n.removesuffix("_theory")) for n in names]
        return np.stack(found, axis=1)


GRACE = 2.0
"""For how many seconds after Ctrl-C the units under way may still end and be kept. The
others then stop after a call of a compiled program, of about a second at most: within 5
seconds all has ended."""

_MOMENT = 0.1
"""How many seconds may pass until Ctrl-C is heard."""

_Running: TypeAlias = dict[Future[list[np.ndarray]], tuple[Unit, int]]
"""The units under way, each with the number of its place among the workers."""


def _join(pool: ThreadPoolExecutor) -> None:
    """Waits for the threads, also if Ctrl-C comes again: one that is still inside XLA when
    the interpreter exits crashes it."""
    try:
        pool.shutdown()
    except KeyboardInterrupt:
        _join(pool)
        raise


THEORY = ("q_theory", "lam_theory", "q_std_theory", "lam_std_theory")


def _theory_width() -> int:
    """How many cells' equations are solved together."""
    # CPU: from 16 on a cell takes hardly less, and units seldom have more. Accelerator, not
    # yet measured: a step costs a launch, however wide.
    return 16 if defaults.on_cpu() else 256


def _require_room(lanes: Lanes, p: int, room: float) -> None:
    """Refuses a program that does not fit into the memory. To run it with fewer lanes would
    be another program, of other bits."""
    needs = 0 if lanes.is_small(p) else lanes.memory()
    if needs > room:
        raise ValueError(
            f"p = {p} with {type(lanes.engine).__name__} needs {needs / 2**30:.2f} GiB for "
            f"{lanes.lanes} lanes, and there are {room / 2**30:.2f}: use Chain(), fewer "
            "times, or a smaller p."
        )


def _room(workers: int) -> float:
    """The bytes that a call may take: most of what is free, shared by those at work."""
    stats = jax.local_devices()[0].memory_stats() or {}
    if "bytes_limit" in stats:
        return 0.9 * (stats["bytes_limit"] - stats.get("bytes_in_use", 0))
    return 0.8 * _free() / workers


def _free() -> int:
    """The bytes that a process can get here. What the system calls free is less: a cache
    of files gives way, and may have filled all."""
    with contextlib.suppress(OSError, TypeError):
        found = re.search(r"MemAvailable: *(\d+) kB", Path("/proc/meminfo").read_text())
        return 1024 * int(found[1])  # pyright: ignore
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
