"""`inopca sweep`."""

import contextlib
import sys
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
    """Computes what is missing of a sweep. The same command goes on where one was stopped;
    several at a time share the work."""

    spec: Positional[Path]
    """A TOML file: [config], [grid] and [run]."""
    store: Path
    """Where the results are, or will be."""
    progress: bool | None = None
    """Show a progress bar; by default if the output is a terminal."""

    hosts: bool = False
    """One sweep over several hosts, by jax.distributed; without it, processes that are
    given the same store share the work on their own."""
    coordinator: str | None = None
    """With --hosts: host:port of process 0. SLURM and Open MPI tell this by themselves."""
    processes: int | None = None
    """With --hosts: how many processes there are."""
    process: int | None = None
    """With --hosts: which of them this is, from 0 on."""

    patience: float = 60.0
    """With --hosts: for how many seconds to look for the others."""

    dask: str | None = None
    """The address of a Dask scheduler, whose workers compute; this process writes."""

    READS: ClassVar[Reads] = {
        "hosts": {True: ("coordinator", "processes", "process", "patience")}
    }

    def run(self) -> None:
        if self.hosts and self.dask is not None:
            raise ValueError(
                f"dask = {self.dask} is not allowed with hosts: leave one of the two out."
            )
        require("patience", self.patience, positive, "pass a number of seconds > 0")
        if self.hosts:  # first of all: a spec has arrays, which start JAX
            told = (self.coordinator, self.processes, self.process)
            ino.connect(*told, patience=self.patience)
        spec = read_spec(self.spec)
        bar = sys.stderr.isatty() if self.progress is None else self.progress
        how: dict[str, Any] = dict(store=self.store, progress=bar, **spec.options)
        try:
            with _executor(self.dask) as executor:
                ino.sweep(spec.config, spec.grid, executor=executor, **how)
        except KeyboardInterrupt:
            # Of several hosts the first alone sees the store.
            if jax.process_count() == 1 and not self.store.exists():
                raise KeyboardInterrupt("nothing was written") from None
            raise KeyboardInterrupt(
                f"finished cells are in {self.store}; the same command goes on from there"
            ) from None
        self._status()

    def _status(self) -> None:
        if jax.process_index() == 0:
            Status(self.store).run()
            _require_some_finite(self.store)


@dataclass(frozen=True)
class Status:
    """How far a sweep is."""

    store: Positional[Path]
    """A sweep's store."""

    def run(self) -> None:
        store = _opened(self.store)
        done = store.done_cells()
        print(f"{self.store}: {done.sum():,} of {done.size:,} cells are done")
        bad = int((_finite_trials(store) < store.manifest["trials"]).sum())
        if bad:
            print(f"in {bad:,} of them trials diverged, and are left out of its means")


@dataclass(frozen=True)
class Verify:
    """Looks for results that are damaged, and marks them to be computed again."""

    store: Positional[Path]
    """A sweep's store."""

    def run(self) -> None:
        store = _opened(self.store)
        damaged = list(store.damaged())
        cells = [cell for unit in damaged for cell in store.cells(unit).tolist()]
        print(f"{self.store}: {len(cells)} cells are damaged{':' if cells else ''}")
        if damaged:
            print(" ".join(map(str, cells)))
            for unit in damaged:
                store.mark(unit)
            print("they are marked: run the sweep again to compute them")
        for name in store.strays():
            print(f"{name} is no file of this store, and is left as it is")
        if left := store.sweep_up():
            print(f"{left} files that killed writers had left are removed")


@dataclass(frozen=True)
class Export:
    """Writes a sweep as netCDF."""

    store: Positional[Path]
    """A sweep's store."""
    out: Path
    """A file: .nc."""

    def run(self) -> None:
        output.require_writable("out", self.out, (".nc",))
        _require_there(self.store)
        found = ino.open_sweep(self.store)
        found["done"] = found.done.astype(np.int8)  # netCDF 3 has no truth values
        with whole_file(self.out) as path:
            found.to_netcdf(path, engine="scipy")
        print(f"netCDF: {self.out}")


@dataclass(frozen=True)
class Plot:
    """Draws the last overlap: a map over two axes, curves over one."""

    store: Positional[Path]
    """A sweep's store."""
    out: Path
    """A figure: .png, .pdf or .svg."""
    variable: str = "abs_q_mean"
    """What to draw, at the last time."""

    def run(self) -> None:
        from .. import plot

        output.require_writable("out", self.out, (".png", ".pdf", ".svg"))
        _require_there(self.store)
        plot.save(plot.sweep(ino.open_sweep(self.store), self.variable), self.out)
        print(f"figure: {self.out}")


Action = (
    Annotated[Run, subcommand(name="run")]
    | Annotated[Status, subcommand(name="status")]
    | Annotated[Verify, subcommand(name="verify")]
    | Annotated[Export, subcommand(name="export")]
    | Annotated[Plot, subcommand(name="plot")]
)


@dataclass(frozen=True)
class SweepCommand:
    """A grid of configs: run it, look at it, check it."""

    action: Action

    def run(self) -> None:
        self.action.run()


@contextlib.contextmanager
def _executor(address: str | None) -> Iterator[Executor | None]:
    """That of the Dask scheduler at an address, if there is one."""
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


def _finite_trials(store: Store) -> np.ndarray:
    """How many trials did not diverge, in each of the cells that are done."""
    finite = store.manifest["fields"].index("finite")
    units = np.flatnonzero(store.done()).tolist()
    return np.concatenate([[], *(store.read(i)[:, finite, 0] for i in units)])


def _require_some_finite(path: Path) -> None:
    counts = _finite_trials(_opened(path))
    if counts.size and not counts.any():
        raise output.Failed(
            f"all trials of all {counts.size:,} cells in {path} diverged: pass smaller "
            "learning rates or a larger p."
        )


def _opened(path: Path) -> Store:
    _require_there(path)
    return Store(path)


def _require_there(path: Path) -> None:
    if not path.exists():
        raise ValueError(f"store = {path} does not exist: run a sweep first.")
