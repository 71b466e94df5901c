"""`inopca sweep`."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import jax
import numpy as np
from tyro.conf import Positional, subcommand

import inopca_jax as ino

from .. import _report
from .._sweep.store import Store
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

    def run(self) -> None:
        self._connect()
        spec = read_spec(self.spec)
        bar = sys.stderr.isatty() if self.progress is None else self.progress
        try:
            ino.sweep(
                spec.config, spec.grid, store=self.store, progress=bar, **spec.options
            )
        except KeyboardInterrupt:
            # Of several hosts the first alone sees the store.
            if jax.process_count() == 1 and not self.store.exists():
                raise KeyboardInterrupt("nothing was written") from None
            raise KeyboardInterrupt(
                f"finished cells are in {self.store}; the same command goes on from there"
            ) from None
        self._status()

    def _connect(self) -> None:
        told = dict(
            coordinator=self.coordinator, processes=self.processes, process=self.process
        )
        if self.hosts:
            ino.connect(**told, patience=self.patience)  # pyright: ignore
        elif any(value is not None for value in told.values()):
            raise ValueError("coordinator, processes and process need --hosts.")

    def _status(self) -> None:
        if jax.process_index() == 0:
            Status(self.store).run()


@dataclass(frozen=True)
class Status:
    """How far a sweep is."""

    store: Positional[Path]
    """A sweep's store."""

    def run(self) -> None:
        store = _opened(self.store)
        done = store.done()
        print(f"{self.store}: {done.sum():,} of {done.size:,} cells are done")
        found = ino.open_sweep(self.store)
        bad = int((found.finite < found.trials).where(found.done, False).sum())
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
        for cell in damaged:
            store.forget(cell)
        what = "damaged or half written"
        print(f"{self.store}: {len(damaged)} cells are {what}{':' if damaged else ''}")
        if damaged:
            print(" ".join(map(str, damaged)))
            print("they are marked: run the sweep again to compute them")
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
        _report.require_writable("out", self.out, (".nc",))
        found = ino.open_sweep(self.store)
        found["done"] = found.done.astype(np.int8)  # netCDF 3 has no truth values
        found.to_netcdf(self.out, engine="scipy")
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

        _report.require_writable("out", self.out, (".png", ".pdf", ".svg"))
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


def _opened(path: Path) -> Store:
    if not path.exists():
        raise ValueError(f"store = {path} does not exist: run a sweep first.")
    return Store(path)
