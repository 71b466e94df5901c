"""A process that calls functions for this one, and may die without harm to it."""

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
    """A worker's process ended before it had a result; the message says how."""


class Worker:
    """A process that calls functions, one at a time, as `submit` asks for it.

    It is started by the first call, and by the next one after it died. Ctrl-C does not
    reach it: whoever made the worker has to `stop` it.
    """

    def __init__(self) -> None:
        self._process: Any = None

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Connection:
        """Has the process call the function; what is returned is ready (see
        `multiprocessing.connection.wait`) when `result` is."""
        if self._process is None:
            self._start()
        # If the process has died in the meantime, `result` says so.
        with contextlib.suppress(ConnectionError):
            self._connection.send((function, arguments))
        return self._connection

    def result(self) -> Any:
        """What the function returned; raises `WorkerDied` if the process ended before."""
        try:
            return self._connection.recv()
        except (EOFError, OSError):
            self._process.join(timeout=5)
            code = self._process.exitcode
            self.stop()
        raise WorkerDied(f"its process {_ending(code)}")

    def stop(self) -> None:
        """Ends the process, whatever it is doing."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._connection.close()
            self._process = None

    def _start(self) -> None:
        spawn = multiprocessing.get_context("spawn")
        self._connection, theirs = spawn.Pipe()
        # A daemon: if this process exits without calling `stop`, Python ends it.
        process = spawn.Process(target=_serve, args=(theirs,), daemon=True)
        with _ctrl_c_blocked():
            process.start()
        self._process = process
        theirs.close()


@contextlib.contextmanager
def _ctrl_c_blocked() -> Iterator[None]:
    """Processes that are started inside never receive the signal that a terminal sends to
    all of them on Ctrl-C: they inherit the mask. Here it is received at the end."""
    # Starting the first process also starts this one, which in some versions of Python
    # lifts the block.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(connection: Connection) -> None:
    """What the process runs, until nobody is left at the other end."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    # By default tqdm makes a semaphore of the system's, of which Python complains if the
    # process is killed.
    tqdm.set_lock(threading.RLock())
    with contextlib.suppress(EOFError, ConnectionError):
        while True:
            function, arguments = connection.recv()
            connection.send(function(*arguments))


def _end_with_parent() -> None:
    """Ends this process when the one that started it ends, killed or not."""
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
