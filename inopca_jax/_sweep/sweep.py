"""`sweep`: trials of the configs of a grid, on every device, kept in a store."""

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from .._check import (
    Checked,
    refuse,
    require_instance,
    require_key,
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
from .run import Bar, Run, Submit, Unit
from .statistics import require_statistics
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

    - `config`: the config that the grid varies. Its times `ts` are those of the results. It
        may have several spikes and components, the same numbers of them in all cells.
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
        deviations that `fluctuations` predicts, which it does for one spike and one
        component.
    - `fsync`: whether to wait until a result is on the disk before it counts as finished.
    - `progress`: whether to show a progress bar.
    - `executor`: a `concurrent.futures.Executor` whose workers compute, instead of this
        process: a `ProcessPoolExecutor` that spawns, an `mpi4py.futures.MPIPoolExecutor`,
        or `distributed.Client(...).get_executor()`. The workers need this package, and no
        access to the store.

    **Returns:**

    An `xarray.Dataset`, as of `open_sweep`: variables of shape `(*axes, time)`, with a
    dimension for each axis of the grid.

    **Example:**

    ```pycon
    >>> import inopca_jax as ino, jax
    >>> config = ino.Config(model=ino.SpikedModel(p=100), ts=[0.0, 1.0])
    >>> grid = {"rule": [ino.InoPCA(0.5), ino.Oja(0.5)], "model.omega": [1.0, 2.0]}
    >>> dataset = ino.sweep(config, grid, trials=4, key=jax.random.key(0))
    >>> dict(dataset.q_mean.sizes)
    {'rule': 2, 'model.omega': 2, 'time': 2}
    >>> dataset.q_mean.sel(rule="Oja").isel(time=-1).shape
    (2,)

    ```
    """
    import_extra("xarray", "sweep", "sweep")  # the dataset, before anything is computed
    engine = Chain() if engine is None else engine
    require_instance("config", config, Config)
    require_instance("engine", engine, AbstractEngine)
    trials = require_whole("trials", trials, 1, "pass a whole number of trials, at least 1")
    require_key(key)
    path = None if store is None else require_path("store", store)
    kept = require_statistics(observables)
    simple = isinstance(theory, (bool, np.bool_, int, str))
    if not (simple and theory in (False, True, "bars")):
        refuse("theory", theory, "pass True or 'bars'")
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
        return _Sweep(run, manifest, path, bool(fsync), bool(progress), submit).dataset()


class _Sweep(NamedTuple):
    """A call of `sweep`."""

    run: Run
    manifest: Mapping[str, Any]
    path: Path | None
    fsync: bool
    progress: bool
    submit: Submit | None

    def dataset(self) -> Any:
        """Runs the sweep, with the other processes if there are any, and returns its
        dataset."""
        is_distributed = jax.process_count() > 1
        if self.path is not None and not is_distributed:
            self._fill(self._store(self.path))
            return open_sweep(self.path)
        run, cells = self.run, self.run.grid.size
        results = np.full(
            (cells, len(self.manifest["fields"]), len(run.grid.config.ts)), np.nan
        )
        if is_distributed:
            self._over_hosts(results)
        else:

            def hold(unit: Unit, found: np.ndarray) -> None:
                results[unit.cells] = found

            with Bar(cells, 0, self.progress) as bar:
                units = run.units(np.ones(run.unit_count, bool))
                run.all(units, hold, bar, self.submit)
        return to_dataset(self.manifest, results, np.ones(cells, bool))

    def _store(self, path: Path) -> Store:
        """Returns the sweep's store, which is created if it does not exist."""
        if not path.exists():
            Store.create(path, self.manifest, self.run.order, self.fsync)
        store = Store(path, self.fsync)
        require_same(path, store.manifest, self.manifest)
        if not store.done().all():
            versions = (store.manifest["versions"], self.manifest["versions"])
            require_same_versions(path, *versions)
        return store

    def _fill(self, store: Store) -> None:
        """Computes the units that a store lacks, while other processes may do the same."""
        run, done = self.run, store.done()
        bar = Bar(run.grid.size, int(store.done_cells(done).sum()), self.progress)
        with Leases(store.path) as leases, bar:

            def keep(unit: Unit, found: np.ndarray) -> None:
                store.write(unit.number, found)
                leases.release(unit.number)

            def is_free(unit: Unit) -> bool:
                """Whether the unit is neither leased by another process nor done since."""
                if not leases.take(unit.number):
                    return False
                if store.is_done(unit.number):
                    leases.release(unit.number)
                    return False
                return True

            while not done.all():
                if not run.all(filter(is_free, run.units(~done)), keep, bar, self.submit):
                    run.interrupted.wait(0.5)  # other processes compute the other units
                done = store.done()
                bar.set(int(store.done_cells(done).sum()))

    def _over_hosts(self, results: np.ndarray) -> None:
        """Fills in `results`, together with the processes that `connect` has joined."""
        store, done = None, np.zeros(self.run.unit_count, bool)
        with hosts.raise_on_all():
            if self.path is not None and jax.process_index() == 0:
                store = self._store(self.path)
                done[:] = store.done()
                results[:] = store.results(done)
        results[:], known = hosts.broadcast(results, done.astype(np.int32))
        hosts.run_distributed(self.run, store, results, known > 0, self.progress)
