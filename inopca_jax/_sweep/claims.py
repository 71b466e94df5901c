"""Who works on what, if several processes share a store.

A claim is a file that only one can create. Its owner touches it while it lives; one that
has not been touched for a while, or whose owner on this machine is gone, is taken over. To
work on a unit twice is a waste and no harm: both write the same bits.
"""

import contextlib
import json
import os
import socket
import threading
import time
import uuid
from pathlib import Path

from .points import Point, reach
from .store import CLAIMS

STALE = 60.0
"""After how many seconds without a sign of life a claim may be taken over."""


class Claims:
    """The claims of one process, in a folder of the store."""

    def __init__(self, store: Path, stale: float = STALE):
        self._folder, self._stale = Path(store) / CLAIMS, stale
        self._folder.mkdir(exist_ok=True)
        self._mine: set[Path] = set()
        self._lock, self._ended = threading.Lock(), threading.Event()
        self._thread = threading.Thread(target=self._live, daemon=True)

    def __enter__(self) -> "Claims":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        for path in list(self._mine):
            self.release(path.name)

    def take(self, name: str) -> bool:
        """Whether the unit is now ours."""
        path = self._folder / name
        if self._is_dead(path):
            # Of those who see the dead one, the one whose rename succeeds buries it.
            grave = path.with_name(f"{name}.{uuid.uuid4().hex}")
            with contextlib.suppress(OSError):
                os.rename(path, grave)
                reach(Point.CLAIM_BURIED)
                grave.unlink()
        try:
            with open(path, "x") as file:
                reach(Point.CLAIM_OPENED)
                json.dump(dict(host=socket.gethostname(), pid=os.getpid()), file)
            with self._lock:
                self._mine.add(path)
            reach(Point.CLAIM_TAKEN)
        except FileExistsError:
            return False
        except BaseException:  # a full disk, Ctrl-C: the claim would be in everybody's way
            self.release(name)
            raise
        return True

    def release(self, name: str) -> None:
        path = self._folder / name
        with self._lock:
            self._mine.discard(path)
        path.unlink(missing_ok=True)
        reach(Point.CLAIM_RELEASED)

    def _is_dead(self, path: Path) -> bool:
        try:
            if time.time() - path.stat().st_mtime > self._stale:
                return True
            owner = json.loads(path.read_text())
        except (OSError, ValueError):  # gone, or just being written
            return False
        return owner["host"] == socket.gethostname() and not _lives(owner["pid"])

    def _live(self) -> None:
        while not self._ended.wait(self._stale / 6):
            with self._lock:
                mine = list(self._mine)
            for path in mine:
                with contextlib.suppress(OSError):
                    os.utime(path)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
