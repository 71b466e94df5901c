"""`inopca sweep`."""

import contextlib
from collections.abc import Iterator
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import jax
import numpy as np
from tyro.conf import Positional, subcommand

import inopca_jax as ino

from .._check import positive, require
from .._files import whole_file
from .._sweep.store import Store
from . import output
from .flags import Reads
from .spec import read_spec


@dataclass(frozen=True)
class Run:
    """Run a sweep, or continue one that was stopped. Several processes with the same store
    share the work."""

    spec: Positional[Path]
    """A TOML file with [config], [grid] and [run]."""
    store: Path
    """The store of the results, which is created if it does not exist."""
    progress: bool | None = None
    """Show a progress bar; by default if messages go to a terminal."""

    hosts: bool = False
    """Run on several hosts by jax.distributed, where only process 0 needs the store."""
    coordinator: str | None = None
    """With --hosts: host:port of process 0. Read from SLURM or Open MPI by default."""
    processes: int | None = None
    """With --hosts: the number of processes."""
    process: int | None = None
    """With --hosts: the index of this process, from 0."""

    patience: float = 60.0
    """With --hosts: for how many seconds to wait for the other processes."""

    dask: str | None = None
    """The address of a Dask scheduler whose workers compute; this process writes."""

    READS: ClassVar[Reads] = {
        name: [{"hosts": True}]
        for name in ("coordinator", "processes", "process", "patience")
    }

    def run(self) -> None:
        if self.hosts and self.dask is not None:
            raise ValueError(
                f"dask = {self.dask} is not allowed with --hosts: leave one of the two out."
            )
        require("patience", self.patience, positive, "pass a number of seconds > 0")
        if self.hosts:  # before the spec is read: its arrays start JAX
            job = (self.coordinator, self.processes, self.process)
            ino.connect(*job, patience=self.patience)
        spec = read_spec(self.spec)
        bar = output.shows_progress(self.progress)
        options: dict[str, Any] = dict(store=self.store, progress=bar, **spec.options)
        try:
            with _executor(self.dask) as executor:
                ino.sweep(spec.config, spec.grid, executor=executor, **options)
        except KeyboardInterrupt:
            # Of several hosts only process 0 needs access to the store.
            if jax.process_count() == 1 and not self.store.exists():
                raise KeyboardInterrupt("nothing was written") from None
            raise KeyboardInterrupt(
                f"finished cells are in {self.store}; the same command continues the sweep"
            ) from None
        if jax.process_index() == 0:
            _show_status(self.store)
            finite = _finite_trials(_open_store(self.store))
            if finite.size and not finite.any():
                raise output.Failed(
                    f"all trials of all {finite.size:,} cells in {self.store} diverged: "
                    "pass smaller learning rates or a larger p."
                )


@dataclass(frozen=True)
class Status:
    """Print how many cells of a sweep are done."""

    store: Positional[Path]
    """A sweep's store."""

    def run(self) -> None:
        _show_status(self.store)


@dataclass(frozen=True)
class Verify:
    """Find damaged results, and mark them to be computed again."""

    store: Positional[Path]
    """A sweep's store."""

    def run(self) -> None:
        store = _open_store(self.store)
        damaged = list(store.damaged())
        cells = [cell for unit in damaged for cell in store.cells(unit).tolist()]
        print(f"{self.store}: {len(cells)} cells are damaged{':' if cells else ''}")
        if damaged:
            print(" ".join(map(str, cells)))
            for unit in damaged:
                store.invalidate(unit)
            print("these are marked: run the sweep again to compute them")
        for name in store.unknown_files():
            print(f"{name} does not belong to this store, and was not changed")
        if removed := store.remove_leftovers():
            print(f"removed {removed} temporary files of processes that were killed")


@dataclass(frozen=True)
class Export:
    """Write a sweep as netCDF."""

    store: Positional[Path]
    """A sweep's store."""
    out: Path
    """The file: .nc."""

    def run(self) -> None:
        output.require_writable("out", self.out, (".nc",))
        dataset = _open_dataset(self.store)
        dataset["done"] = dataset.done.astype(np.int8)  # netCDF 3 has no booleans
        with whole_file(self.out) as path:
            dataset.to_netcdf(path, engine="scipy")
        print(f"netCDF: {self.out}")


@dataclass(frozen=True)
class Plot:
    """Draw a variable at the last time: a map over two axes, or curves over one."""

    store: Positional[Path]
    """A sweep's store."""
    out: Path
    """The figure: .png, .pdf or .svg."""
    variable: str | None = None
    """The variable to draw; by default abs_q_mean, or grassmann_distance_mean if there are
    several spikes or components."""

    def run(self) -> None:
        output.require_writable("out", self.out, output.FIGURES)
        dataset = _open_dataset(self.store)
        output.save_figure(self.out, lambda plot: plot.sweep(dataset, self.variable))


Action = (
    Annotated[Run, subcommand(name="run")]
    | Annotated[Status, subcommand(name="status")]
    | Annotated[Verify, subcommand(name="verify")]
    | Annotated[Export, subcommand(name="export")]
    | Annotated[Plot, subcommand(name="plot")]
)


@dataclass(frozen=True)
class SweepCommand:
    """Run a sweep over a grid of configs; show, verify, export or draw its results."""

    action: Action

    def run(self) -> None:
        self.action.run()


@contextlib.contextmanager
def _executor(address: str | None) -> Iterator[Executor | None]:
    """Yields an executor of the Dask scheduler at an address, or None without one."""
    if address is None:
        yield None
        return
    try:
        from distributed import Client
    except ImportError as error:
        raise ImportError("--dask needs Dask: pip install 'inopca_jax[dask]'.") from error
    try:
        client = Client(address, timeout=10, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise ValueError(f"dask = {address} does not answer: {error}.") from None
    with client:
        yield client.get_executor()


def _show_status(path: Path) -> None:
    store = _open_store(path)
    done = store.done_cells()
    print(f"{path}: {done.sum():,} of {done.size:,} cells are done")
    diverged = int((_finite_trials(store) < store.manifest["trials"]).sum())
    if diverged:
        print(f"in {diverged:,} of them some trials diverged, and are left out")


def _finite_trials(store: Store) -> np.ndarray:
    """Returns the number of trials that did not diverge, for each cell that is done."""
    row = store.manifest["fields"].index("finite")
    units = np.flatnonzero(store.done()).tolist()
    return np.concatenate([[], *(store.read(i)[:, row, 0] for i in units)])


def _open_dataset(path: Path) -> Any:
    _open_store(path)  # names the argument as this command does
    return ino.open_sweep(path)


def _open_store(path: Path) -> Store:
    if not path.exists():
        raise ValueError(f"store = {path} does not exist: run a sweep first.")
    return Store(path)
