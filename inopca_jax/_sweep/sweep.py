"""Many trials of many configs, on every device, and nothing lost."""

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

import jax
import numpy as np

from .._check import (
    Checked,
    refuse,
    require_instance,
    require_key,
    require_list,
    require_path,
    require_whole,
)
from .._config import Config
from .._engine import AbstractEngine, Chain
from .._interrupt import deferred_interrupt
from .._types import TrialKey
from . import hosts
from .dataset import dataset, open_sweep
from .executor import submit_to
from .grid import Grid
from .leases import Leases
from .manifest import describe, require_same, require_same_versions
from .run import Run, Submit, Unit
from .statistics import STATISTICS, require_statistics
from .store import Store


def sweep(
    config: Checked[Config],
    grid: Any,
    *,
    trials: Checked[int] = 20,
    key: Checked[TrialKey],
    engine: Checked[AbstractEngine | None] = None,
    store: Checked[str | Path | None] = None,
    observables: Checked[str | Sequence[str]] = ("mean", "std"),
    theory: Checked[bool | str] = False,
    fsync: Any = True,
    progress: Any = False,
    executor: Checked[Executor | None] = None,
) -> Any:
    """Trials of the config in every cell of a grid, as an `xarray.Dataset`.

    `grid` names numbers of the config (`"rule.tau"`, `"model.omega"`, `"start.lam0"`) or
    parts (`"model.p"`, `"rule"`) and their values; a tuple of names has tuples of values,
    which vary together. Of each cell's trials the `observables` are kept, at the config's
    times: `"mean"`, `"std"`, `"quantiles"`, or all `"trials"`. `theory` adds the mean
    field, `theory="bars"` its predicted deviations, too.

    With a `store`, a path, every finished unit of cells is on disk (for sure, unless
    `fsync` is off), a sweep that was stopped goes on from there, and several processes that
    are given the same one share the work. All devices are used, and all hosts that
    `connect` has joined; then the first process alone needs to see the store. The same key
    gives the same bits, whatever the devices, the processes and the interruptions. A trial
    that diverges is left out, and `finite` counts the others. Ctrl-C waits for two seconds
    for what may end by then, and for the calls of compiled programs that are under way.

    An `executor`, any `concurrent.futures.Executor`, has its workers compute instead of
    this process, which writes what they return: a `ProcessPoolExecutor` that spawns, an
    `mpi4py.futures.MPIPoolExecutor`, or `distributed.Client(...).get_executor()`. Its
    workers need the package, and not the store.
    """
    engine = Chain() if engine is None else engine
    require_instance("config", config, Config)
    require_instance("engine", engine, AbstractEngine)
    trials = require_whole("trials", trials, 1, "pass a whole number of trials, at least 1")
    require_key(key)
    path = None if store is None else require_path("store", store)
    if not isinstance(observables, str):
        remedy = f"name some of {', '.join(STATISTICS)}"
        observables = require_list("observables", observables, remedy)
        if not all(isinstance(name, str) for name in observables):
            refuse("observables", observables, remedy)
    kept = require_statistics(observables)
    simple = isinstance(theory, (bool, np.bool_, int, str))
    if not (simple and theory in (False, True, "bars")):
        refuse("theory", theory, "pass True or 'bars'")
    _require_names(grid)
    if executor is not None:
        require_instance("executor", executor, Executor)
        if jax.process_count() > 1:
            raise ValueError("executor is not allowed after connect: use one of the two.")
    made = Grid(config, grid)
    with deferred_interrupt() as interrupted:
        run = Run(made, engine, key, trials, kept, theory, interrupted)
        manifest = describe(run, key, engine)
        submit = None
        if executor is not None:
            submit = submit_to(executor, run, manifest, key, engine)
        return _swept(run, manifest, path, bool(fsync), bool(progress), submit)


def _require_names(grid: Any) -> None:
    for names in grid if isinstance(grid, Mapping) else ():
        if not isinstance(names, (str, tuple)):
            raise ValueError(f"grid names {names!r}: pass a name, or a tuple of names.")


def _swept(
    run: Run,
    manifest: Mapping[str, Any],
    path: Path | None,
    fsync: bool,
    progress: bool,
    submit: Submit | None,
) -> Any:
    """The results as a dataset, by all processes that there are."""
    if path is not None and jax.process_count() == 1:
        _shared(run, path, manifest, fsync, progress, submit)
        return open_sweep(path)
    cells, times = run.grid.size, len(run.grid.config.ts)
    results = np.full((cells, len(manifest["fields"]), times), np.nan)
    if jax.process_count() > 1:
        _over_hosts(run, path, manifest, fsync, progress, results)
    else:

        def hold(unit: Unit, found: np.ndarray) -> None:
            results[unit.cells] = found

        with run.bar(cells, 0, progress) as bar:
            run.all(run.units(np.ones(run.unit_count, bool)), hold, bar, submit)
    return dataset(manifest, results, np.ones(cells, bool))


def _opened(run: Run, path: Path, manifest: Mapping[str, Any], fsync: bool) -> Store:
    """The sweep's store, made if it is not there."""
    if not path.exists():
        Store.create(path, manifest, run.order, fsync)
    kept = Store(path, fsync)
    require_same(path, kept.manifest, manifest)
    if not kept.done().all():
        versions = (kept.manifest["versions"], manifest["versions"])
        require_same_versions(f"store = {path}", *versions)
    return kept


def _shared(
    run: Run,
    path: Path,
    manifest: Mapping[str, Any],
    fsync: bool,
    progress: bool,
    submit: Submit | None,
) -> None:
    """Computes what is missing of a store, beside others that may be at it, too."""
    kept = _opened(run, path, manifest, fsync)
    done = kept.done()
    cells = lambda done: sum(len(kept.cells(i)) for i in np.flatnonzero(done).tolist())
    with Leases(path) as leases, run.bar(run.grid.size, cells(done), progress) as bar:

        def keep(unit: Unit, found: np.ndarray) -> None:
            kept.write(unit.number, found)
            leases.release(unit.number)

        def free(unit: Unit) -> bool:
            """Whether nobody else is at it, nor has just done it."""
            if not leases.take(unit.number):
                return False
            if kept.is_done(unit.number):
                leases.release(unit.number)
                bar.update(len(unit.cells))
                return False
            return True

        while not done.all():
            if not run.all(filter(free, run.units(~done)), keep, bar, submit):
                run.interrupted.wait(0.5)  # others are at the rest
            done = kept.done()
            bar.update(cells(done) - bar.n)


def _over_hosts(
    run: Run,
    path: Path | None,
    manifest: Mapping[str, Any],
    fsync: bool,
    progress: bool,
    results: np.ndarray,
) -> None:
    """Fills in the results together with the processes that `connect` has joined."""
    kept, done = None, np.zeros(run.unit_count, bool)
    with hosts.raise_on_all():
        if path is not None and jax.process_index() == 0:
            kept = _opened(run, path, manifest, fsync)
            done[:] = kept.done()
            results[:] = kept.results(done)
    results[:], known = hosts.broadcast(results, done.astype(np.int32))
    hosts.run_distributed(run, kept, results, known > 0, progress)
