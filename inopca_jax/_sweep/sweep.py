"""Many trials of many configs, on every device, and nothing lost."""

import importlib.metadata
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.random as jr
import numpy as np
from tqdm import tqdm

from .._check import require_instance, require_whole
from .._config import Config
from .._engine import AbstractEngine, Chain, defaults
from .._leaves import leaves
from .._theory import fluctuations, mean_field
from .._types import TrialKey
from .claims import Claims
from .dataset import dataset, open_sweep
from .grid import Grid, Group
from .lanes import Lanes
from .statistics import fields, require_statistics, summary
from .store import Store


class Unit(NamedTuple):
    """Cells of a group that are computed and written together."""

    name: str
    group: int
    rows: np.ndarray
    cells: np.ndarray


def sweep(
    config: Config,
    grid: Any,
    *,
    trials: int = 20,
    key: TrialKey,
    engine: AbstractEngine | None = None,
    store: str | Path | None = None,
    observables: Sequence[str] = ("mean", "std"),
    theory: bool | str = False,
    fsync: bool = True,
    progress: bool = False,
) -> Any:
    """Trials of the config in every cell of a grid, as an `xarray.Dataset`.

    `grid` names numbers of the config (`"rule.tau"`, `"model.omega"`, `"start.lam0"`) or
    parts (`"model.p"`, `"rule"`) and their values; a tuple of names has tuples of values,
    which vary together. Of each cell's trials the `observables` are kept, at the config's
    times: `"mean"`, `"std"`, `"quantiles"`, or all `"trials"`. `theory` adds the mean
    field, `theory="bars"` its predicted deviations, too.

    With a `store`, a path, every finished cell is on disk (for sure, unless `fsync` is
    off), a sweep that was stopped goes on from there, and several processes that are given
    the same one share the work. All devices are used. The same key gives the same bits,
    whatever the devices, the processes and the interruptions. A trial that diverges is left
    out, and `finite` counts the others.
    """
    engine = Chain() if engine is None else engine
    require_instance("config", config, Config)
    require_instance("engine", engine, AbstractEngine)
    trials = require_whole("trials", trials, 1, "pass a whole number of trials, at least 1")
    observables = require_statistics(observables)
    if theory not in (False, True, "bars"):
        raise ValueError(f"theory = {theory!r} is not allowed: pass True or 'bars'.")
    made = Grid(config, grid)
    about = _about(made, trials, key, engine, observables, theory)
    run = _Run(made, engine, key, trials, observables, theory)
    if store is None:
        results = np.full((made.size, len(about["fields"]), len(config.ts)), np.nan)
        done = np.zeros(made.size, bool)

        def hold(unit: Unit, found: list[np.ndarray]) -> None:
            results[unit.cells], done[unit.cells] = np.stack(found), True

        with run.bar(made.size, 0, progress) as bar:
            run.all(run.units(~done), hold, bar)
        return dataset(about, results, done)
    path = Path(store)
    if not path.exists():
        Store.create(path, about, made.size, len(about["fields"]), len(config.ts))
    kept = Store(path, fsync)
    _require_same(path, kept.about, about)
    with Claims(path) as claims:

        def keep(unit: Unit, found: list[np.ndarray]) -> None:
            kept.write(unit.cells.tolist(), found)
            claims.release(unit.name)

        def free(unit: Unit) -> bool:
            """Whether nobody else is at it, nor has just done it."""
            if not claims.take(unit.name):
                return False
            if all(map(kept.is_done, unit.cells.tolist())):
                claims.release(unit.name)
                return False
            return True

        while not (done := kept.done()).all():
            with run.bar(made.size, int(done.sum()), progress) as bar:
                computed = run.all(filter(free, run.units(~done)), keep, bar)
            if not computed:
                time.sleep(0.5)  # others are at the rest
    return open_sweep(path)


class _Run:
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
            size = max(1, lanes.lanes // self.trials)
            for begin in range(0, len(group.cells), size):
                rows = np.arange(begin, min(begin + size, len(group.cells)))
                rows = rows[wanted[group.cells[rows]]]
                if len(rows):
                    name = f"{number}-{begin}"
                    yield Unit(name, number, rows, group.cells[rows])

    def all(self, units: Iterator[Unit], keep: Any, bar: tqdm) -> int:
        """Computes and keeps the units, as many at a time as there are devices or cores;
        how many there were."""
        # On a CPU the small steps of a tile keep one core busy.
        workers = os.cpu_count() or 1 if defaults.on_cpu() else len(self.devices)
        finished, running = 0, {}
        with ThreadPoolExecutor(workers) as pool:
            try:
                free = list(range(workers))
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
        with jax.enable_x64(self.x64):
            configs = jax.tree.map(jax.numpy.asarray, group.batched(unit.rows))
            arrays, static = eqx.partition(configs, eqx.is_array)
            paths = jax.vmap(lambda a: solve(eqx.combine(a, static)))(arrays)
        return np.stack([getattr(paths, n.removesuffix("_theory")) for n in names], axis=1)


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


def _about(grid: Grid, trials, key, engine, observables, theory) -> dict[str, Any]:
    """Everything that the results depend on, for the store to remember."""
    names = fields(observables, trials)
    names += list(THEORY[: {False: 0, True: 2, "bars": 4}[theory]])
    arrays = {k: np.asarray(v).tolist() for k, v in leaves(grid.config).items()}
    _, tree = jax.tree.flatten(grid.config)
    raw = key if key.dtype == np.uint32 else jr.key_data(key)
    packages = ("jax", "jaxlib", "numpy", "inopca_jax")
    return dict(
        config=arrays,
        rule=type(grid.config.rule).__name__,
        structure=str(tree),
        grid=[dict(names=list(a.names), values=_plain(a.values)) for a in grid.axes],
        trials=trials,
        key=np.asarray(raw).tolist(),
        engine=_written(engine),
        x64=bool(jax.config.jax_enable_x64),  # pyright: ignore
        fields=names,
        tile=[engine.suited(g.config).tile() for g in grid.groups],
        versions={name: importlib.metadata.version(name) for name in packages},
    )


def _plain(values: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """Numbers as they are, parts of a config as they are written."""
    is_number = lambda x: np.ndim(x) == 0 and np.asarray(x).dtype.kind in "iuf"
    one = lambda x: np.asarray(x).item() if is_number(x) else _written(x)
    return [[one(x) for x in row] for row in values]


def _written(part: Any) -> str:
    """With its numbers, on one line."""
    return eqx.tree_pformat(part, short_arrays=False, width=10_000)


def _require_same(path: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    now = json.loads(json.dumps(now))
    differ = [k for k in now if k != "versions" and before.get(k) != now[k]]
    if differ:
        shown = "; ".join(
            f"{k}: {str(before.get(k))[:80]} there, {str(now[k])[:80]} here" for k in differ
        )
        raise ValueError(
            f"store = {path} was made by another sweep ({shown}): pass another path."
        )
