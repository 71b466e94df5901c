"""Many trials of many configs, on every device, and nothing lost."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from .._check import require_instance, require_whole
from .._config import Config
from .._engine import AbstractEngine, Chain
from .._interrupt import deferred_interrupt
from .._types import TrialKey
from . import hosts
from .about import description, require_same
from .claims import Claims
from .dataset import dataset, open_sweep
from .grid import Grid
from .run import Run, Unit
from .statistics import require_statistics
from .store import Store


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
    the same one share the work. All devices are used, and all hosts that `connect` has
    joined; then the first process alone needs to see the store. The same key gives the
    same bits, whatever the devices, the processes and the interruptions. A trial that
    diverges is left out, and `finite` counts the others. Ctrl-C waits for two seconds for
    what may end by then, and for the calls of compiled programs that are under way.
    """
    engine = Chain() if engine is None else engine
    require_instance("config", config, Config)
    require_instance("engine", engine, AbstractEngine)
    trials = require_whole("trials", trials, 1, "pass a whole number of trials, at least 1")
    observables = require_statistics(observables)
    if theory not in (False, True, "bars"):
        raise ValueError(f"theory = {theory!r} is not allowed: pass True or 'bars'.")
    made = Grid(config, grid)
    with deferred_interrupt() as interrupted:
        run = Run(made, engine, key, trials, observables, theory, interrupted)
        about = description(run, key, engine)
        return _swept(run, about, None if store is None else Path(store), fsync, progress)


def _swept(
    run: Run, about: Mapping[str, Any], path: Path | None, fsync: bool, progress: bool
) -> Any:
    """The results as a dataset, by all processes that there are."""
    if path is not None and jax.process_count() == 1:
        _shared(run, path, about, fsync, progress)
        return open_sweep(path)
    cells, times = run.grid.size, len(run.grid.config.ts)
    results = np.full((cells, len(about["fields"]), times), np.nan)
    done = np.zeros(cells, bool)
    if jax.process_count() > 1:
        _over_hosts(run, path, about, fsync, progress, results, done)
        return dataset(about, results, done)

    def hold(unit: Unit, found: list[np.ndarray]) -> None:
        results[unit.cells], done[unit.cells] = np.stack(found), True

    with run.bar(cells, 0, progress) as bar:
        run.all(run.units(~done), hold, bar)
    return dataset(about, results, done)


def _opened(path: Path, about: Mapping[str, Any], cells: int, fsync: bool) -> Store:
    """The sweep's store, made if it is not there."""
    if not path.exists():
        shape = (len(about["fields"]), len(about["config"]["ts"]))
        Store.create(path, about, cells, *shape, fsync)
    kept = Store(path, fsync)
    require_same(path, kept.about, about)
    return kept


def _shared(
    run: Run, path: Path, about: Mapping[str, Any], fsync: bool, progress: bool
) -> None:
    """Computes what is missing of a store, beside others that may be at it, too."""
    kept = _opened(path, about, run.grid.size, fsync)
    done = kept.done()
    begun = int(done.sum())
    with Claims(path) as claims, run.bar(run.grid.size, begun, progress) as bar:

        def keep(unit: Unit, found: list[np.ndarray]) -> None:
            kept.write(unit.cells.tolist(), found)
            claims.release(unit.name)

        def free(unit: Unit) -> bool:
            """Whether nobody else is at it, nor has just done it."""
            if not claims.take(unit.name):
                return False
            if all(map(kept.is_done, unit.cells.tolist())):
                claims.release(unit.name)
                bar.update(len(unit.cells))
                return False
            return True

        while not done.all():
            if not run.all(filter(free, run.units(~done)), keep, bar):
                run.interrupted.wait(0.5)  # others are at the rest
            done = kept.done()
            bar.update(int(done.sum()) - bar.n)


def _over_hosts(
    run: Run,
    path: Path | None,
    about: Mapping[str, Any],
    fsync: bool,
    progress: bool,
    results: np.ndarray,
    done: np.ndarray,
) -> None:
    """Fills in the results together with the processes that `connect` has joined."""
    kept = None
    with hosts.heard_by_all():
        if path is not None and jax.process_index() == 0:
            kept = _opened(path, about, run.grid.size, fsync)
            results[:], done[:] = kept.results(), kept.done()
    results[:], known = hosts.told(results, done.astype(np.int32))
    done[:] = known > 0
    hosts.together(run, kept, results, done, progress)
