"""Who works on what, if several processes share a store.

A lease is a file that only one process can create. Its owner touches it while it lives.
Who wants a unit that is leased watches the file: if nothing about it changes for a while,
or if its owner was a process of this machine that is gone, the lease is taken over. How
long is measured by the watcher's own clock, so that clocks of two machines are never
compared. To compute a unit twice is a waste and no harm: both write the same bits.
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
"""After how many seconds without a sign of life a lease may be taken over."""


class Leases:
    """The leases of one process, in a folder of the store."""

    def __init__(self, store: Path, stale: float | None = None):
        self._folder = Path(store) / LEASES
        self._stale = STALE if stale is None else stale
        self._folder.mkdir(exist_ok=True)
        self._mine: set[Path] = set()
        # What others' leases looked like, and since when, by our own clock.
        self._watched: dict[Path, tuple[Any, float]] = {}
        self._lock, self._ended = threading.Lock(), threading.Event()
        self._thread = threading.Thread(target=self._live, daemon=True)

    def __enter__(self) -> "Leases":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        for path in list(self._mine):
            self.release(int(path.name))

    def take(self, unit: int) -> bool:
        """Whether the unit is now ours."""
        path = self._folder / str(unit)
        if self._is_dead(path):
            # Of those who see that it is dead, the one whose rename succeeds removes it.
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
                self._mine.add(path)
            reach(Point.LEASE_TAKEN)
        except FileExistsError:
            return False
        except BaseException:  # a full disk, Ctrl-C: the lease would be in everybody's way
            self.release(unit)
            raise
        self._watched.pop(path, None)
        return True

    def release(self, unit: int) -> None:
        path = self._folder / str(unit)
        with self._lock:
            self._mine.discard(path)
        path.unlink(missing_ok=True)
        reach(Point.LEASE_RELEASED)

    def _is_dead(self, path: Path) -> bool:
        try:
            state, content = path.stat(), path.read_bytes()
        except OSError:  # there is none
            self._watched.pop(path, None)
            return False
        looks = (state.st_mtime_ns, state.st_ino, content)
        now = time.monotonic()
        before, since = self._watched.get(path, (None, now))
        if looks != before:
            since = now
        self._watched[path] = (looks, since)
        return now - since >= self._stale or _owner_is_gone(content)

    def _live(self) -> None:
        while not self._ended.wait(self._stale / 6):
            with self._lock:
                mine = list(self._mine)
            for path in mine:
                with contextlib.suppress(OSError):
                    os.utime(path)


def _owner_is_gone(content: bytes) -> bool:
    """Whether a lease names a process of this machine that does not run. One that names
    nobody may just be being written."""
    try:
        owner = json.loads(content)
        host, pid = owner["host"], owner["pid"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return False
    is_number = isinstance(pid, int) and 0 < pid < 2**31
    return is_number and host == socket.gethostname() and not _lives(pid)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
