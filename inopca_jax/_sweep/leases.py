"""Leases: which process computes which unit, if several share a store.

A lease is a file that only one process can create. Its owner touches it regularly. A
process that wants a leased unit watches the file: if it does not change for `STALE`
seconds, or if its owner was a process of this machine that has ended, the lease is taken
over. The seconds are measured by the watching process, so clocks of different machines are
never compared. A unit that is computed twice costs time only: both write the same bits.
"""

import contextlib
import json
import os
import socket
import threading
import time
import uuid
from pathlib import Path
from typing import Any

from .points import Point, reach
from .store import LEASES

STALE = 60.0
"""After how many seconds without a change a lease may be taken over."""


class Leases:
    """The leases that this process holds in a store; a context manager.

    **Arguments:**

    - `store`: the path of the store.
    - `stale`: after how many seconds without a change another process's lease may be taken
        over.
    """

    def __init__(self, store: Path, stale: float | None = None):
        self._folder = Path(store) / LEASES
        self._stale = STALE if stale is None else stale
        self._folder.mkdir(exist_ok=True)
        self._own: set[Path] = set()
        # The last state of other processes' leases, and since when, by our own clock.
        self._watched: dict[Path, tuple[Any, float]] = {}
        self._lock, self._ended = threading.Lock(), threading.Event()
        self._thread = threading.Thread(target=self._touch_own_leases, daemon=True)

    def __enter__(self) -> "Leases":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        for path in list(self._own):
            self.release(int(path.name))

    def take(self, unit: int) -> bool:
        """Takes the lease of a unit if it is free; returns whether it was."""
        path = self._folder / str(unit)
        if self._is_stale(path):
            # If several processes find it stale, the one whose rename succeeds removes it.
            removed = path.with_name(f"{unit}.{uuid.uuid4().hex}")
            with contextlib.suppress(OSError):
                os.rename(path, removed)
                reach(Point.LEASE_SET_ASIDE)
                removed.unlink()
        try:
            with open(path, "x") as file:
                reach(Point.LEASE_OPENED)
                json.dump(dict(host=socket.gethostname(), pid=os.getpid()), file)
            with self._lock:
                self._own.add(path)
            reach(Point.LEASE_TAKEN)
        except FileExistsError:
            return False
        except BaseException:  # a full disk, or Ctrl-C: an empty lease would block the unit
            self.release(unit)
            raise
        self._watched.pop(path, None)
        return True

    def release(self, unit: int) -> None:
        """Gives back the lease of a unit."""
        path = self._folder / str(unit)
        with self._lock:
            self._own.discard(path)
        path.unlink(missing_ok=True)
        reach(Point.LEASE_RELEASED)

    def _is_stale(self, path: Path) -> bool:
        """Whether the lease may be taken over."""
        try:
            stat, content = path.stat(), path.read_bytes()
        except OSError:  # there is no lease
            self._watched.pop(path, None)
            return False
        state = (stat.st_mtime_ns, stat.st_ino, content)
        now = time.monotonic()
        previous, since = self._watched.get(path, (None, now))
        if state != previous:
            since = now
        self._watched[path] = (state, since)
        return now - since >= self._stale or _owner_has_ended(content)

    def _touch_own_leases(self) -> None:
        while not self._ended.wait(self._stale / 6):
            with self._lock:
                own = list(self._own)
            for path in own:
                with contextlib.suppress(OSError):
                    os.utime(path)


def _owner_has_ended(content: bytes) -> bool:
    """Whether a lease names a process of this machine that no longer runs. A lease without
    an owner may be about to be written, so it counts as held."""
    try:
        owner = json.loads(content)
        host, pid = owner["host"], owner["pid"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return False
    is_pid = isinstance(pid, int) and 0 < pid < 2**31
    return is_pid and host == socket.gethostname() and not _is_running(pid)


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # it runs, as another user
        pass
    return True
