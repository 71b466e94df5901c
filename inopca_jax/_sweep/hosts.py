"""One sweep over several hosts, by JAX's own engine for that.

All processes take part in rounds: each computes its units of a round on its own devices, by
the program that one device would run, and then all exchange what they have. So the bits are
those of one process, and the first process alone needs to see the store.
"""

import contextlib
import os
import socket
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import jax
import numpy as np

from .._check import Checked, plain_number, refuse, require_whole
from . import cluster
from .run import Run, Unit
from .store import Store


def connect(
    coordinator: Checked[str | None] = None,
    processes: Checked[int | None] = None,
    process: Checked[int | None] = None,
    *,
    patience: Checked[float] = 60.0,
) -> None:
    """Joins this process to the others of a `sweep`, before anything else is computed.

    SLURM and Open MPI tell who the others are; elsewhere pass the first process's address,
    `"host:port"`, how many there are, and which of them this is, from 0 on. JAX aborts if
    somebody is missing, so all meet first, for at most `patience` seconds.
    """
    if coordinator is not None and not isinstance(coordinator, str):
        refuse("coordinator", coordinator, "pass 'host:port'")
    if processes is not None:
        processes = require_whole("processes", processes, 1, "pass how many there are")
    if process is not None:
        process = require_whole("process", process, 0, "number the processes from 0 on")
    in_time = lambda x: np.isfinite(x) & (x >= 0)
    patience = plain_number("patience", patience, in_time, "pass a number of seconds")
    where, count, this, local = _place(coordinator, processes, process)
    host, _, port = where.rpartition(":")
    if not (host and port.isdecimal() and port.isascii() and 0 < int(port) < 65536):
        raise ValueError(f"coordinator = {where!r} is not allowed: pass 'host:port'.")
    if count < 1 or not 0 <= this < count:
        raise ValueError(
            f"process = {this} of processes = {count} is not allowed: number them from 0 "
            "to processes - 1."
        )
    if this == 0:
        _await_guests(where, int(port), count, patience)
    else:
        _visit(where, host.strip("[]"), int(port), this, patience)
    # The processes on a host share its GPUs, one each, unless the variable that JAX has for
    # it says otherwise. By itself JAX may give all to each: it does not know Open MPI 5.
    mine = None if "JAX_LOCAL_DEVICE_IDS" in os.environ else local
    jax.distributed.initialize(
        where, count, this, mine, initialization_timeout=max(1, int(patience))
    )


def _place(
    coordinator: str | None, processes: int | None, process: int | None
) -> tuple[str, int, int, int | None]:
    """Where the coordinator is, how many processes there are, which this is, and which of
    those on its host: as told, else as the surroundings tell."""
    there = cluster.detected()
    where = there.coordinator if coordinator is None else coordinator
    count = there.processes if processes is None else processes
    this = there.process if process is None else process
    found = dict(coordinator=where, processes=count, process=this)
    missing = [name for name, value in found.items() if value is None]
    if where is None or count is None or this is None:
        raise ValueError(
            f"{', '.join(missing)} cannot be told from the surroundings, which are neither "
            "SLURM nor Open MPI: pass coordinator, processes and process."
        )
    return where, count, this, there.local


def _await_guests(where: str, port: int, count: int, patience: float) -> None:
    """Process 0 waits until all others have come, and tells them so."""
    end = time.monotonic() + patience
    guests: dict[int, socket.socket] = {}
    with contextlib.ExitStack() as stack:
        try:
            door = stack.enter_context(_door(port))
        except OSError as error:
            raise ValueError(
                f"coordinator = {where}: its port cannot be opened here "
                f"({error.strerror}): pass another."
            ) from None
        while missing := set(range(1, count)) - set(guests):
            door.settimeout(max(0.01, end - time.monotonic()))
            try:
                guest, _ = door.accept()
                stack.enter_context(guest)
                guest.settimeout(5.0)
                guests[int(guest.recv(16))] = guest
            except ValueError:
                continue  # somebody else who knocks at the port
            except OSError:
                if time.monotonic() < end:
                    continue
                raise ValueError(
                    f"processes = {count}, but after {patience:g} s number "
                    f"{', '.join(map(str, sorted(missing)))} is not there: start as many, "
                    "or say how many there are."
                ) from None
        for guest in guests.values():
            guest.sendall(_ALL_HERE)
            guest.recv(1)  # they hang up first, which leaves the port free for JAX


def _door(port: int) -> socket.socket:
    if socket.has_dualstack_ipv6():
        family = socket.AF_INET6
        return socket.create_server(("", port), family=family, dualstack_ipv6=True)
    return socket.create_server(("", port))


_ALL_HERE = b"all here"


def _visit(where: str, host: str, port: int, this: int, patience: float) -> None:
    """The others knock at process 0's door until it opens, and wait until all are there."""
    end = time.monotonic() + patience
    while True:
        left = max(0.1, end - time.monotonic())
        try:
            with socket.create_connection((host, port), timeout=left) as call:
                call.sendall(str(this).encode())
                if call.recv(len(_ALL_HERE)) == _ALL_HERE:
                    return
                raise OSError("it hung up")
        except OSError as error:
            if time.monotonic() >= end:
                raise ValueError(
                    f"coordinator = {where} did not answer within {patience:g} s "
                    f"({error}): is process 0 running there, may the port be reached from "
                    "here, and are all processes started?"
                ) from None
        time.sleep(0.2)


def run_distributed(
    run: Run, kept: Store | None, results: np.ndarray, done: np.ndarray, progress: bool
) -> None:
    """Fills in the results, by cells, of the units that are not done, on all hosts; the
    first keeps them in the store."""
    this, count = jax.process_index(), jax.process_count()
    # How many units a process has in a round: the one of most devices is busy, too.
    share = int(exchanged(np.array([run.workers], np.int32))[0].max())
    units = list(run.units(~done))
    shape = (run.unit_cells, *results.shape[1:])
    begun = sum(len(run.unit(i).cells) for i in np.flatnonzero(done).tolist())
    with run.bar(len(results), begun, progress and this == 0) as bar:
        for begin in range(0, len(units), share * count):
            mine = units[begin : begin + share * count][this::count]
            numbers, rows, stopped = exchanged(*_round(run, mine, share, shape))
            with raise_on_all():
                for number, found in zip(numbers.tolist(), rows, strict=True):
                    if number < 0:
                        continue
                    cells = run.unit(number).cells
                    results[cells] = found[: len(cells)]
                    if kept is not None:
                        kept.write(number, results[cells])
                    bar.update(len(cells))
            if stopped.any():
                raise KeyboardInterrupt


def _round(
    run: Run, units: list[Unit], share: int, shape: tuple[int, ...]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The numbers of the units and their results, filled up with -1 and zeros so that all
    processes have as many; and whether somebody wants to stop."""
    numbers, rows = np.full(share, -1, np.int32), np.zeros((share, *shape))
    place = {unit.number: i for i, unit in enumerate(units)}
    stopped = np.zeros(1, np.int32)

    def hold(unit: Unit, found: np.ndarray) -> None:
        here = place[unit.number]
        rows[here, : len(found)] = found
        numbers[here] = unit.number

    with run.bar(0, 0, False) as nothing:
        try:
            run.all(iter(units), hold, nothing)
        except KeyboardInterrupt:
            stopped[:] = 1  # the others have to hear of it before this one leaves
    return numbers, rows, stopped


def exchanged(*arrays: np.ndarray) -> tuple[np.ndarray, ...]:
    """What the processes have, one after the other, on all of them."""
    from jax.experimental.multihost_utils import process_allgather

    return _as_bits(partial(process_allgather, tiled=True), *arrays)


def broadcast(*arrays: np.ndarray) -> tuple[np.ndarray, ...]:
    """What the first process has, on all of them."""
    from jax.experimental.multihost_utils import broadcast_one_to_all

    return _as_bits(broadcast_one_to_all, *arrays)


def _as_bits(send: Any, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
    # JAX would round doubles to single precision, unless x64 is on.
    sent = send([np.ascontiguousarray(a).view(np.uint32) for a in arrays])
    return tuple(np.array(got).view(a.dtype) for got, a in zip(sent, arrays, strict=True))


@contextlib.contextmanager
def raise_on_all() -> Iterator[None]:
    """What goes wrong inside, on the first process, stops all; the others have nothing to
    do in there."""
    error: Exception | None = None
    try:
        yield
    except (ValueError, OSError, ImportError) as caught:
        error = caught
    (failed,) = broadcast(np.asarray([error is not None], np.int32))
    if error is not None:
        raise error
    if failed[0]:
        raise ValueError("The first process could not use the store; it says why.")
