"""A sweep over several processes or hosts, by `jax.distributed`.

All processes work in rounds: each computes its units of a round on its own devices, by the
program that a single device would run, and then all exchange their results. So the bits are
those of a single process, and only process 0 needs access to the store.
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
from .run import Bar, Run, Unit
from .store import Store


def connect(
    coordinator: Checked[str | None] = None,
    processes: Checked[int | None] = None,
    process: Checked[int | None] = None,
    *,
    patience: Checked[float] = 60.0,
) -> None:
    """Joins this process to the other processes that run the same `sweep`.

    Call it in every process, before JAX computes anything. In a job of SLURM or Open MPI
    the arguments are read from the environment; elsewhere pass the first three.

    **Arguments:**

    - `coordinator`: `"host:port"` of process 0.
    - `processes`: the number of processes.
    - `process`: the index of this process, from 0.
    - `patience`: for how many seconds to wait for the other processes. If they do not all
        start in that time, a `ValueError` names those that are missing.

    **Returns:**

    Nothing. A `sweep` that is called afterwards uses the devices of all processes.

    In a script that is started twice, with `process` 0 and 1, it is the first line, and
    `sweep` follows. In the example process 1 is not started.

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> ino.connect("localhost:64321", processes=2, process=0, patience=0.1)
    Traceback (most recent call last):
        ...
    ValueError: processes = 2, but process 1 did not start within 0.1 s: ...

    ```
    """
    if coordinator is not None and not isinstance(coordinator, str):
        refuse("coordinator", coordinator, "pass 'host:port'")
    if processes is not None:
        processes = require_whole("processes", processes, 1, "pass how many there are")
    if process is not None:
        process = require_whole("process", process, 0, "number the processes from 0 on")
    is_duration = lambda x: np.isfinite(x) & (x >= 0)
    patience = plain_number("patience", patience, is_duration, "pass a number of seconds")
    address, count, index, local = _resolve(coordinator, processes, process)
    host, _, port = address.rpartition(":")
    if not (host and port.isdecimal() and port.isascii() and 0 < int(port) < 65536):
        raise ValueError(f"coordinator = {address!r} is not allowed: pass 'host:port'.")
    if count < 1 or not 0 <= index < count:
        raise ValueError(
            f"process = {index} of processes = {count} is not allowed: number them from 0 "
            "to processes - 1."
        )
    # JAX aborts the process if another one is missing, so all meet first.
    if index == 0:
        _wait_for_others(address, int(port), count, patience)
    else:
        _report_to_coordinator(address, host.strip("[]"), int(port), index, patience)
    # The processes on a host share its GPUs, one each, unless JAX's own variable says
    # otherwise. JAX may give all of them to each process: it does not know Open MPI 5.
    device = None if "JAX_LOCAL_DEVICE_IDS" in os.environ else local
    jax.distributed.initialize(
        address, count, index, device, initialization_timeout=max(1, int(patience))
    )


def _resolve(
    coordinator: str | None, processes: int | None, process: int | None
) -> tuple[str, int, int, int | None]:
    """Returns the coordinator's address, the number of processes, the index of this one,
    and its index on its host: the arguments, or what the environment gives where they are
    None."""
    job = cluster.detect()
    address = job.coordinator if coordinator is None else coordinator
    count = job.processes if processes is None else processes
    index = job.process if process is None else process
    if address is None or count is None or index is None:
        values = dict(coordinator=address, processes=count, process=index)
        missing = [name for name, value in values.items() if value is None]
        raise ValueError(
            f"{', '.join(missing)} cannot be read from the environment, which is neither "
            "SLURM nor Open MPI: pass coordinator, processes and process."
        )
    return address, count, index, job.local


def _wait_for_others(address: str, port: int, count: int, patience: float) -> None:
    """Waits, in process 0, until all others have called, and answers them."""
    deadline = time.monotonic() + patience
    connections: dict[int, socket.socket] = {}
    with contextlib.ExitStack() as stack:
        try:
            server = stack.enter_context(_server(port))
        except OSError as error:
            raise ValueError(
                f"coordinator = {address}: its port cannot be opened here "
                f"({error.strerror}): pass another."
            ) from None
        while missing := set(range(1, count)) - set(connections):
            server.settimeout(max(0.01, deadline - time.monotonic()))
            try:
                connection, _ = server.accept()
                stack.enter_context(connection)
                connection.settimeout(5.0)
                connections[int(connection.recv(16))] = connection
            except ValueError:
                continue  # a call from some other program
            except OSError:
                if time.monotonic() < deadline:
                    continue
                raise ValueError(
                    f"processes = {count}, but process "
                    f"{', '.join(map(str, sorted(missing)))} did not start within "
                    f"{patience:g} s: start all processes, or pass their actual number."
                ) from None
        for connection in connections.values():
            connection.sendall(_ALL_CONNECTED)
            connection.recv(1)  # the other side closes first, so the port is free for JAX


def _server(port: int) -> socket.socket:
    if socket.has_dualstack_ipv6():
        family = socket.AF_INET6
        return socket.create_server(("", port), family=family, dualstack_ipv6=True)
    return socket.create_server(("", port))


_ALL_CONNECTED = b"all here"


def _report_to_coordinator(
    address: str, host: str, port: int, index: int, patience: float
) -> None:
    """Calls process 0 until it answers that all processes have called."""
    deadline = time.monotonic() + patience
    while True:
        timeout = max(0.1, deadline - time.monotonic())
        try:
            with socket.create_connection((host, port), timeout=timeout) as connection:
                connection.sendall(str(index).encode())
                if connection.recv(len(_ALL_CONNECTED)) == _ALL_CONNECTED:
                    return
                raise OSError("it closed the connection")
        except OSError as error:
            if time.monotonic() >= deadline:
                raise ValueError(
                    f"coordinator = {address} did not answer within {patience:g} s "
                    f"({error}): check that process 0 runs there, that its port can be "
                    "reached from here, and that all processes are started."
                ) from None
        time.sleep(0.2)


def run_distributed(
    run: Run, store: Store | None, results: np.ndarray, done: np.ndarray, progress: bool
) -> None:
    """Computes the units that are not done, on all processes.

    **Arguments:**

    - `store`: where process 0 writes the results, if anywhere; None in the others.
    - `results`: shape `(cells, fields, times)`; filled in, in every process.
    - `done`: shape `(units,)`.
    """
    index, count = jax.process_index(), jax.process_count()
    # Every process has as many units in a round as the one with most devices can use.
    per_process = int(_all_gather(np.array([run.workers], np.int32))[0].max())
    units = list(run.units(~done))
    unit_shape = (run.unit_cells, *results.shape[1:])
    cells_done = sum(len(run.unit(i).cells) for i in np.flatnonzero(done).tolist())
    with Bar(len(results), cells_done, progress and index == 0) as bar:
        for begin in range(0, len(units), per_process * count):
            own = units[begin : begin + per_process * count][index::count]
            numbers, blocks, interrupted = _all_gather(
                *_compute_round(run, own, per_process, unit_shape)
            )
            with raise_on_all():
                for number, block in zip(numbers.tolist(), blocks, strict=True):
                    if number < 0:
                        continue
                    cells = run.unit(number).cells
                    results[cells] = block[: len(cells)]
                    if store is not None:
                        store.write(number, results[cells])
                    bar.finish(number, len(cells))
            if interrupted.any():
                raise KeyboardInterrupt


def _compute_round(
    run: Run, units: list[Unit], per_process: int, unit_shape: tuple[int, ...]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Computes this process's units of a round.

    **Returns:**

    The numbers of the units and their results, padded with -1 and zeros to `per_process`
    units, and whether Ctrl-C was pressed, as an array of one number.
    """
    numbers = np.full(per_process, -1, np.int32)
    blocks = np.zeros((per_process, *unit_shape))
    slot = {unit.number: i for i, unit in enumerate(units)}
    interrupted = np.zeros(1, np.int32)

    def keep(unit: Unit, results: np.ndarray) -> None:
        i = slot[unit.number]
        blocks[i, : len(results)] = results
        numbers[i] = unit.number

    try:
        run.all(iter(units), keep, Bar(0, 0, False))
    except KeyboardInterrupt:
        interrupted[:] = 1  # the others must learn of it before this process ends
    return numbers, blocks, interrupted


def _all_gather(*arrays: np.ndarray) -> tuple[np.ndarray, ...]:
    """Returns, in every process, the arrays of all processes, concatenated."""
    from jax.experimental.multihost_utils import process_allgather

    return _exchange_bits(partial(process_allgather, tiled=True), *arrays)


def broadcast(*arrays: np.ndarray) -> tuple[np.ndarray, ...]:
    """Returns, in every process, the arrays of process 0."""
    from jax.experimental.multihost_utils import broadcast_one_to_all

    return _exchange_bits(broadcast_one_to_all, *arrays)


def _exchange_bits(exchange: Any, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
    # As words: JAX would round doubles to single precision, unless x64 is on.
    received = exchange([np.ascontiguousarray(a).view(np.uint32) for a in arrays])
    pairs = zip(received, arrays, strict=True)
    return tuple(np.array(words).view(array.dtype) for words, array in pairs)


@contextlib.contextmanager
def raise_on_all() -> Iterator[None]:
    """Raises an error in all processes if the block fails in process 0.

    The block reads and writes the store, which only process 0 does.
    """
    error: Exception | None = None
    try:
        yield
    except (ValueError, OSError, ImportError) as caught:
        error = caught
    (failed,) = broadcast(np.asarray([error is not None], np.int32))
    if error is not None:
        raise error
    if failed[0]:
        raise ValueError("Process 0 could not use the store; its own message says why.")
