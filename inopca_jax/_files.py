"""Files that are written whole or not at all."""

import contextlib
import os
import re
import uuid
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def whole_file(path: str | Path) -> Iterator[Path]:
    """A path to write to, whose file becomes `path` when the block ends.

    If the block fails, or is interrupted, what was at `path` before is still there. Its
    folder is made if it is not there. The temporary file has the same ending, from which
    writers tell the format.
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
    """Removes what `whole_file` left in a folder when its process was killed. No process
    may be writing there."""
    for path in folder.iterdir():
        if _UNFINISHED.fullmatch(path.name):
            path.unlink()
