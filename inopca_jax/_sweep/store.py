"""Results that survive being killed.

A zarr that is there in full size before the first result: one chunk a cell, in a codec that
knows if a bit has flipped, and a flag for each that is written last. Nothing is ever
appended, and a chunk is either the whole new one or not there.
"""

import contextlib
import itertools
import json
import os
import re
import shutil
import tempfile
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .points import Point, reach

_RESULTS, _DONE, _ABOUT = "results", "done", "about"
_CHUNK = re.compile(r"c\.(\d+)(\.0)*$")
_PARTIAL = ".partial"
CLAIMS = ".claims"
"""The folder that says which process computes what."""

_POINTS = {
    _RESULTS: (
        Point.RESULT_WRITTEN,
        Point.RESULT_SYNCED,
        Point.RESULT_NAMED,
        Point.RESULTS_COMPLETE,
    ),
    _DONE: (
        Point.FLAG_WRITTEN,
        Point.FLAG_SYNCED,
        Point.FLAG_NAMED,
        Point.FLAGS_COMPLETE,
    ),
}


def zarr() -> Any:
    try:
        import zarr
    except ImportError as error:
        raise ImportError(
            "A sweep's store needs zarr and xarray: pip install 'inopca_jax[sweep]'."
        ) from error
    return zarr


def encoder() -> Callable[[np.ndarray], bytes]:
    """The codecs that `Store.create` names. zstd's own checksum is of what it holds: a bit
    of its header may flip unseen, so that another one is of the whole chunk."""
    from numcodecs.checksum32 import CRC32C
    from numcodecs.zstd import Zstd

    zstd, crc = Zstd(level=1, checksum=True), CRC32C(location="end")
    return lambda chunk: bytes(crc.encode(np.frombuffer(zstd.encode(chunk), np.uint8)))


class Store:
    """The results of a sweep, by the cells' numbers."""

    def __init__(self, path: Path, fsync: bool = True):
        self.path, self.fsync = Path(path), fsync
        try:
            group = zarr().open_group(self.path, mode="r+")
            self._results, self._done = group[_RESULTS], group[_DONE]
            self.about: dict[str, Any] = dict(group.attrs[_ABOUT])
            self.cells = int(self._done.shape[0])
        except (KeyError, ValueError, OSError, TypeError) as error:
            raise ValueError(
                f"store = {path} is not a sweep's store ({type(error).__name__}): pass "
                "another path, or remove what is there."
            ) from None

    @staticmethod
    def create(
        path: Path,
        about: Mapping[str, Any],
        cells: int,
        fields: int,
        times: int,
        fsync: bool = True,
    ) -> None:
        """An empty one; it appears whole, or not at all."""
        path = Path(path)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            made = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
        except OSError as error:
            raise ValueError(f"store = {path} cannot be written to: {error}.") from None
        try:
            group = zarr().open_group(made, mode="w")
            codecs = zarr().codecs
            compressors = [codecs.ZstdCodec(level=1, checksum=True), codecs.Crc32cCodec()]
            # All chunks of an array in one folder, so that one sync settles their names.
            flat = dict(name="default", separator=".")
            shared = dict(compressors=compressors, chunk_key_encoding=flat)
            size = (fields, times)
            group.create_array(
                _RESULTS,
                shape=(cells, *size),
                chunks=(1, *size),
                dtype="<f8",
                fill_value=np.nan,
                **shared,
            )
            group.create_array(
                _DONE, shape=(cells,), chunks=(1,), dtype="uint8", fill_value=0, **shared
            )
            group.attrs[_ABOUT] = json.loads(json.dumps(about))
            for entry in (made, *made.rglob("*")) if fsync else ():
                _sync(entry)
            reach(Point.STORE_MADE)
            with contextlib.suppress(OSError):
                # Another worker may have been quicker: then its store is the one.
                os.rename(made, path)
            reach(Point.STORE_NAMED)
            if fsync:
                _sync(path.parent)
        finally:
            shutil.rmtree(made, ignore_errors=True)

    def done(self) -> np.ndarray:
        """Which cells are finished. A flag that cannot be read is none."""
        found = np.zeros(self.cells, bool)
        # All flags are written alike, so that it is enough to decode one of each kind.
        kinds: dict[bytes, bool] = {}
        for cell in self._written(_DONE):
            content = self._chunk(_DONE, cell).read_bytes()
            if content not in kinds:
                kinds[content] = self.is_done(cell)
            found[cell] = kinds[content]
        return found

    def is_done(self, cell: int) -> bool:
        try:
            return bool(self._done[cell] == 1)
        except Exception:  # of the codec's own kinds
            return False

    def _written(self, name: str) -> list[int]:
        """The cells that have a chunk."""
        chunks = (_CHUNK.match(entry) for entry in os.listdir(self.path / name))
        return sorted(int(chunk[1]) for chunk in chunks if chunk)

    def results(self) -> np.ndarray:
        """All of them, not a number where a cell is not finished."""
        done = self.done()
        found = np.full(self._results.shape, np.nan)
        some = np.flatnonzero(done)
        try:
            if done.all():
                return np.asarray(self._results[:])
            if len(some):
                found[some] = self._results.oindex[some]
        except Exception as error:  # of the codecs' own kinds
            raise ValueError(
                f"store = {self.path} is damaged ({error}): run `inopca sweep verify "
                f"{self.path}`, which marks what is, and the sweep again."
            ) from None
        return found

    def write(self, cells: Sequence[int], results: Sequence[np.ndarray]) -> None:
        """The results, and when they are on the disk the flags."""
        self._put(_RESULTS, cells, (np.ascontiguousarray(x, "<f8") for x in results))
        self._put(_DONE, cells, itertools.repeat(np.ones(1, np.uint8)))

    def _put(self, name: str, cells: Sequence[int], chunks: Iterable[np.ndarray]) -> None:
        """Chunks as zarr would write them, whose own way takes twenty times as long for
        small ones, and leaves no moment to sync a file before it gets its name."""
        encoded = encoder()
        written, synced, named, complete = _POINTS[name]
        for cell, chunk in zip(cells, chunks, strict=False):
            path = self._chunk(name, cell)
            partial = path.with_name(f"{path.name}.{uuid.uuid4().hex}{_PARTIAL}")
            try:
                with open(partial, "wb") as file:
                    file.write(encoded(chunk))
                    file.flush()
                    reach(written)
                    if self.fsync:
                        os.fsync(file.fileno())
                        reach(synced)
                os.replace(partial, path)
                reach(named)
            except BaseException:
                partial.unlink(missing_ok=True)
                raise
        if self.fsync:
            _sync(self.path / name)
        reach(complete)

    def sweep_up(self, older: float = 60.0) -> int:
        """Removes what writers that were killed have left, and says how much it was."""
        begun = [p for name in (_RESULTS, _DONE) for p in (self.path / name).iterdir()]
        begun = [p for p in begun if p.suffix == _PARTIAL]
        begun += self.path.absolute().parent.glob(f".{self.path.name}.*")
        begun += (self.path / CLAIMS).glob("*")
        now, removed = time.time(), 0
        for path in begun:
            with contextlib.suppress(FileNotFoundError):
                if now - path.stat().st_mtime > older:  # a younger one may still be in use
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
                    removed += 1
        return removed

    def forget(self, cell: int) -> None:
        """Marks a cell for recomputation. Its result stays: another process may have just
        written it anew, and be about to flag it."""
        self._chunk(_DONE, cell).unlink(missing_ok=True)

    def damaged(self) -> Iterator[int]:
        """The cells of which a chunk is flipped, cut or gone; if it is the flag that is
        gone, nothing tells it from a cell whose writer has not come so far."""
        for cell in sorted({*self._written(_DONE), *self._written(_RESULTS)}):
            flag, result = (self._chunk(name, cell) for name in (_DONE, _RESULTS))
            try:
                whole = flag.exists() and result.exists() and self._done[cell] == 1
                whole = whole and self._results[cell].shape == self._results.shape[1:]
            except Exception:
                whole = False
            if not whole:
                yield cell

    def _chunk(self, name: str, cell: int) -> Path:
        array = self._results if name == _RESULTS else self._done
        key = array.metadata.encode_chunk_key((cell, *(0,) * (array.ndim - 1)))
        return self.path / name / key


def _sync(path: Path) -> None:
    """A file's content, or a folder's names, to the disk."""
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
