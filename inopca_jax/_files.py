"""Files that are written completely or not at all."""

import contextlib
import os
import re
import uuid
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def whole_file(path: str | Path) -> Iterator[Path]:
    """Yields a temporary path to write to; its file becomes `path` when the block ends.

    If the block fails or is interrupted, a file that was at `path` before is unchanged. The
    folder is created if it does not exist. The temporary path has the same suffix, from
    which writers choose the format.
    """
    path = Path(os.path.realpath(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and not path.is_file():  # a pipe or a terminal cannot be replaced
        yield path
        return
    temporary = path.with_name(f".{path.stem}.{uuid.uuid4().hex}.unfinished{path.suffix}")
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


_UNFINISHED = re.compile(r"\..*\.[0-9a-f]{32}\.unfinished(\.\w+)?")


def remove_unfinished(folder: Path) -> None:
    """Removes the temporary files that `whole_file` leaves if its process is killed.

    Call it only if no process writes to the folder.
    """
    for path in folder.iterdir():
        if _UNFINISHED.fullmatch(path.name):
            path.unlink()
