"""`sweep`: trials of the configs of a grid, on every device, kept in a store."""

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
from .._extras import import_extra
from .._interrupt import deferred_interrupt
from .._types import TrialKey
from . import hosts
from .dataset import open_sweep, to_dataset
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
    """Returns statistics of simulated trials of a config at every point of a grid.

    All devices are used, and the devices of all processes that `connect` has joined. The
    same key gives the same bits, whatever the number of devices and processes and however
    often the sweep was interrupted. With a `store`, finished cells are on disk: a sweep
    that was stopped continues when it is called again, and several processes with the same
    store share the work. After Ctrl-C, results that are complete within two seconds are
    still kept.

    **Arguments:**

    - `config`: the config that the grid varies. Its times `ts` are those of the results.
    - `grid`: a dict of names and their values, such as `{"rule.tau": [0.1, 0.5]}`. A name
        is a number of the config (`"rule.tau"`, `"model.omega"`, `"start.lam0"`,
        `"model.p"`) or a part (`"rule"`). A tuple of names takes tuples of values, which
        vary together. A cell is one choice of all values.
    - `trials`: the number of trials in each cell.
    - `key`: a key of `jax.random`.
    - `engine`: how a trial is simulated; by default `Chain()`.
    - `store`: the path of a store, which is created if it does not exist. If processes were
        joined by `connect`, only process 0 needs access to it.
    - `observables`: which statistics of a cell's trials to keep: some of `"mean"`, `"std"`,
        `"quantiles"`, and `"trials"` for all trials. Trials that diverge are left out.
    - `theory`: True adds the mean field of every cell, `"bars"` also the standard
        deviations that `fluctuations` predicts.
    - `fsync`: whether to wait until a result is on the disk before it counts as finished.
    - `progress`: whether to show a progress bar.
    - `executor`: a `concurrent.futures.Executor` whose workers compute, instead of this
        process: a `ProcessPoolExecutor` that spawns, an `mpi4py.futures.MPIPoolExecutor`,
        or `distributed.Client(...).get_executor()`. The workers need this package, and no
        access to the store.

    **Returns:**

    An `xarray.Dataset`, as of `open_sweep`: variables of shape `(*axes, time)`, with a
    dimension for each axis of the grid.
    """
    import_extra("xarray", "sweep", "sweep")  # the dataset, before anything is computed
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
    """Runs the sweep, with the other processes if there are any; returns its dataset."""
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
    return to_dataset(manifest, results, np.ones(cells, bool))


def _opened(run: Run, path: Path, manifest: Mapping[str, Any], fsync: bool) -> Store:
    """Returns the sweep's store, which is created if it does not exist."""
    if not path.exists():
        Store.create(path, manifest, run.order, fsync)
    kept = Store(path, fsync)
    require_same(path, kept.manifest, manifest)
    if not kept.done().all():
        versions = (kept.manifest["versions"], manifest["versions"])
        require_same_versions(path, *versions)
    return kept


def _shared(
    run: Run,
    path: Path,
    manifest: Mapping[str, Any],
    fsync: bool,
    progress: bool,
    submit: Submit | None,
) -> None:
    """Computes the units that a store lacks, while other processes may do the same."""
    kept = _opened(run, path, manifest, fsync)
    done = kept.done()
    cells = lambda done: sum(len(kept.cells(i)) for i in np.flatnonzero(done).tolist())
    with Leases(path) as leases, run.bar(run.grid.size, cells(done), progress) as bar:

        def keep(unit: Unit, found: np.ndarray) -> None:
            kept.write(unit.number, found)
            leases.release(unit.number)

        def free(unit: Unit) -> bool:
            """Whether the unit is neither leased by another process nor done since."""
            if not leases.take(unit.number):
                return False
            if kept.is_done(unit.number):
                leases.release(unit.number)
                bar.update(len(unit.cells))
                return False
            return True

        while not done.all():
            if not run.all(filter(free, run.units(~done)), keep, bar, submit):
                run.interrupted.wait(0.5)  # other processes compute the remaining units
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
    """Fills in `results`, together with the processes that `connect` has joined."""
    kept, done = None, np.zeros(run.unit_count, bool)
    with hosts.raise_on_all():
        if path is not None and jax.process_index() == 0:
            kept = _opened(run, path, manifest, fsync)
            done[:] = kept.done()
            results[:] = kept.results(done)
    results[:], known = hosts.broadcast(results, done.astype(np.int32))
    hosts.run_distributed(run, kept, results, known > 0, progress)
