"""The work of a sweep in units, on every device of this machine."""

import os
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
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
        self.programs = [_fitting(engine, group, key) for group in grid.groups]
        self.devices: list[Any] = jax.local_devices()
        # On a CPU the small steps of a tile keep one core busy.
        on_cpu, cores = defaults.on_cpu(), os.cpu_count() or 1
        self.workers: int = cores if on_cpu else len(self.devices)

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
        finished, running = 0, {}
        with ThreadPoolExecutor(self.workers) as pool:
            try:
                free = list(range(self.workers))
                while True:
                    while free and (unit := next(units, None)) is not None:
                        slot = free.pop()
                        device = self.devices[slot % len(self.devices)]
                        running[pool.submit(self.one, unit, device)] = (unit, slot)
                    if not running:
                        return finished
                    ended, _ = wait(running, return_when=FIRST_COMPLETED)
                    for future in ended:
                        unit, slot = running.pop(future)
                        free.append(slot)
                        keep(unit, future.result())
                        finished += 1
                        bar.update(len(unit.cells))
            except KeyboardInterrupt:
                # What is under way is finished and kept; a second Ctrl-C ends it at once.
                for future, (unit, _) in list(running.items()):
                    keep(unit, future.result())
                raise

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
            parts.append(lanes.run(configs, cells[some], trials[some], device))
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


def _fitting(engine: AbstractEngine, group: Group, key: TrialKey) -> Lanes:
    """The program of a group, of as many tiles as the memory has room for."""
    tiles = _TILES if defaults.on_cpu() else 1
    one = group.batched(np.array([0]))
    room = _room()
    while True:
        lanes = Lanes(engine, group.config, key, tiles)
        # It takes a compilation to know, and at a smaller p nothing is large.
        needs = lanes.memory(one) if group.config.model.p >= 10_000 else 0
        if needs <= room:
            return lanes
        if tiles == 1:
            raise ValueError(
                f"p = {group.config.model.p} with {type(engine).__name__} needs "
                f"{needs / 2**30:.2f} GiB for one tile of {lanes.tile} lanes, and there "
                f"are {room / 2**30:.2f}: use Chain(), fewer times, or a smaller p."
            )
        tiles //= 2


def _room() -> float:
    """The bytes that a call may take: most of what is free, shared by those at work."""
    stats = jax.local_devices()[0].memory_stats() or {}
    if "bytes_limit" in stats:
        return 0.9 * (stats["bytes_limit"] - stats.get("bytes_in_use", 0))
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return 0.8 * free / (os.cpu_count() or 1)
