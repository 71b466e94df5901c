"""The work of a sweep in units, on every device of this machine."""

import contextlib
import os
import re
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np
from tqdm import tqdm

from .._engine import AbstractEngine, defaults
from .._theory import fluctuations, mean_field
from .._types import TrialKey
from .grid import Grid, Group
from .lanes import Lanes
from .statistics import summary


class Unit(NamedTuple):
    """Cells of a group that are computed and written together."""

    name: str
    group: int
    rows: np.ndarray
    cells: np.ndarray


class Run:
    """What all units share."""

    def __init__(self, grid: Grid, engine, key, trials, observables, theory):
        self.grid: Grid = grid
        self.trials: int = trials
        self.observables: tuple[str, ...] = observables
        self.theory: bool | str = theory
        # What a thread inherits by hand: JAX's contexts belong to the one that made them.
        self.x64: bool = jax.config.jax_enable_x64  # pyright: ignore
        self.devices: list[Any] = jax.local_devices()
        # On a CPU the small steps of a tile keep one core busy.
        cores = (os.cpu_count() or 1) if defaults.on_cpu() else 1
        self.workers: int = max(cores, len(self.devices))
        self.stopped = threading.Event()
        room = _room(self.workers)
        self.programs = [_fitting(engine, group, key, room) for group in grid.groups]

    def shrink(self, tiles: Sequence[int]) -> None:
        """Makes each group's program one of so many tiles."""
        self.programs = [
            Lanes(lanes.engine, group.config, lanes.key, n)
            for lanes, group, n in zip(self.programs, self.grid.groups, tiles, strict=True)
        ]

    def bar(self, cells: int, done: int, progress: bool) -> tqdm:
        return tqdm(
            total=cells, initial=done, unit=" cells", desc="sweep", disable=not progress
        )

    def units(self, wanted: np.ndarray) -> Iterator[Unit]:
        """The cells that are wanted, in the same units for all whose memory is alike; if
        it is not, some cells are computed twice."""
        for number, (group, lanes) in enumerate(
            zip(self.grid.groups, self.programs, strict=True)
        ):
            size = self.cells_of(lanes)
            for begin in range(0, len(group.cells), size):
                rows = np.arange(begin, min(begin + size, len(group.cells)))
                rows = rows[wanted[group.cells[rows]]]
                if len(rows):
                    name = f"{number}-{begin}"
                    yield Unit(name, number, rows, group.cells[rows])

    def cells_of(self, lanes: Lanes) -> int:
        """How many cells a unit has."""
        return max(1, lanes.lanes // self.trials)

    def all(self, units: Iterator[Unit], keep: Any, bar: tqdm) -> int:
        """Computes and keeps the units, as many at a time as there are devices or cores;
        how many there were."""
        running: dict[Future[list[np.ndarray]], tuple[Unit, int]] = {}
        with ThreadPoolExecutor(self.workers) as pool:
            try:
                try:
                    return self._in_turn(pool, running, units, keep, bar)
                except KeyboardInterrupt:
                    # What is under way is finished and kept.
                    for future, (unit, _) in list(running.items()):
                        keep(unit, future.result())
                    raise
            except BaseException:
                # Of an error or a second Ctrl-C, which does not wait for whole units.
                self.stopped.set()
                raise

    def _in_turn(self, pool: ThreadPoolExecutor, running, units, keep, bar) -> int:
        finished, free = 0, list(range(self.workers))
        while True:
            while free and (unit := next(units, None)) is not None:
                slot = free.pop()
                device = self.devices[slot % len(self.devices)]
                running[pool.submit(self.one, unit, device)] = (unit, slot)
            if not running:
                return finished
            ended, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in ended:
                unit, slot = running[future]
                keep(unit, future.result())
                del running[future]  # not before: Ctrl-C may come while it is kept
                free.append(slot)
                finished += 1
                bar.update(len(unit.cells))

    def one(self, unit: Unit, device: Any) -> list[np.ndarray]:
        """The results of its cells."""
        group, lanes = self.grid.groups[unit.group], self.programs[unit.group]
        rows = np.repeat(unit.rows, self.trials)
        cells = np.repeat(unit.cells, self.trials).astype(np.int32)
        trials = np.tile(np.arange(self.trials, dtype=np.int32), len(unit.cells))
        parts = []
        for begin in range(0, len(rows), lanes.lanes):
            some = slice(begin, begin + lanes.lanes)
            configs = group.batched(rows[some])
            which = (cells[some], trials[some])
            parts.append(lanes.run(configs, *which, device, self.stopped))
        shape = (len(unit.cells), self.trials, -1)
        q, lam = (
            np.concatenate([x[n] for x in parts]).reshape(shape) for n in ("q", "lam")
        )
        found = [summary(a, b, self.observables) for a, b in zip(q, lam, strict=True)]
        if not self.theory:
            return found
        return [
            np.concatenate([x, t])
            for x, t in zip(found, self._theory(group, unit), strict=True)
        ]

    def _theory(self, group: Group, unit: Unit) -> np.ndarray:
        solve = fluctuations if self.theory == "bars" else mean_field
        names = THEORY[: 4 if self.theory == "bars" else 2]
        # As many rows whatever is wanted of a unit: the same rounding, and one program.
        rows = np.resize(unit.rows, self.cells_of(self.programs[unit.group]))
        with jax.enable_x64(self.x64):
            configs = jax.tree.map(jax.numpy.asarray, group.batched(rows))
            arrays, static = eqx.partition(configs, eqx.is_array)
            paths = jax.vmap(lambda a: solve(eqx.combine(a, static)))(arrays)
        found = [getattr(paths, n.removesuffix("_theory")) for n in names]
        return np.stack(found, axis=1)[: len(unit.rows)]


THEORY = ("q_theory", "lam_theory", "q_std_theory", "lam_std_theory")

# On a CPU a unit is short enough to lose little, and long enough that its own costs are
# small; on an accelerator a tile is wide.
_TILES = 8


def _fitting(engine: AbstractEngine, group: Group, key: TrialKey, room: float) -> Lanes:
    """The program of a group, of as many tiles as the memory has room for."""
    tiles = _TILES if defaults.on_cpu() else 1
    one = group.batched(np.array([0]))
    while True:
        lanes = Lanes(engine, group.config, key, tiles)
        needs = 0 if lanes.is_small(group.config.model.p) else lanes.memory(one)
        if needs <= room:
            return lanes
        if tiles == 1:
            raise ValueError(
                f"p = {group.config.model.p} with {type(engine).__name__} needs "
                f"{needs / 2**30:.2f} GiB for one tile of {lanes.tile} lanes, and there "
                f"are {room / 2**30:.2f}: use Chain(), fewer times, or a smaller p."
            )
        tiles //= 2


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
