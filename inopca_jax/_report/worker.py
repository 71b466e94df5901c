"""A process that calls functions, and whose death does not end the process that uses it."""

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from typing import Any

from tqdm import tqdm


class WorkerDied(Exception):
    """Raised if a worker's process ended before it returned a result; says how it ended."""


class Worker:
    """A process that calls functions, one at a time.

    `submit` starts the process if it is not running. Ctrl-C does not reach the process: it
    runs until `stop` is called, or this process ends.
    """

    def __init__(self) -> None:
        self._process: Any = None

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Connection:
        """Makes the process call the function. Returns a connection that is ready, in the
        sense of `multiprocessing.connection.wait`, once `result` returns at once."""
        if self._process is None:
            self._start()
        # If the process has died in the meantime, `result` raises.
        with contextlib.suppress(ConnectionError):
            self._connection.send((function, arguments))
        return self._connection

    def result(self) -> Any:
        """Returns what the function returned, or raises `WorkerDied`."""
        try:
            return self._connection.recv()
        except (EOFError, OSError):
            self._process.join(timeout=5)
            code = self._process.exitcode
            self.stop()
        raise WorkerDied(f"its process {_ending(code)}")

    def stop(self) -> None:
        """Kills the process."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._connection.close()
            self._process = None

    def _start(self) -> None:
        spawn = multiprocessing.get_context("spawn")
        self._connection, other_end = spawn.Pipe()
        # Python ends a daemon if this process exits without calling `stop`.
        process = spawn.Process(target=_serve, args=(other_end,), daemon=True)
        with _ctrl_c_blocked():
            process.start()
        self._process = process
        other_end.close()


@contextlib.contextmanager
def _ctrl_c_blocked() -> Iterator[None]:
    """Blocks SIGINT, which a terminal sends to all processes on Ctrl-C, for good in the
    processes that are started inside, which inherit the mask, and until the end here."""
    # Otherwise starting the first process would also start the resource tracker, which in
    # some versions of Python lifts the block.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(connection: Connection) -> None:
    """Calls the functions that arrive, until the other end of the connection is closed."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    # By default tqdm creates a system semaphore, and Python warns that it leaked if the
    # process is killed.
    tqdm.set_lock(threading.RLock())
    with contextlib.suppress(EOFError, ConnectionError):
        while True:
            function, arguments = connection.recv()
            connection.send(function(*arguments))


def _end_with_parent() -> None:
    """Ends this process when the process that started it has ended, killed or not."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _ending(code: int | None) -> str:
    if code is None:
        return "does not answer"
    if code >= 0:
        return f"ended with exit code {code}"
    reason = ", as when memory runs out" if code == -signal.SIGKILL else ""
    return f"was ended by signal {-code} ({signal.strsignal(-code)}){reason}"
