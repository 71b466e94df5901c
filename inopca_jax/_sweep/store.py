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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

_RESULTS, _DONE, _ABOUT = "results", "done", "about"
_CHUNK = re.compile(r"c\.(\d+)(\.0)*$")
_PARTIAL = ".partial"


def zarr() -> Any:
    try:
        import zarr
    except ImportError as error:
        raise ImportError(
            "A sweep's store needs zarr and xarray: pip install 'inopca_jax[sweep]'."
        ) from error
    return zarr


def zarr_zstd() -> Any:
    """The codec that `Store.create` names."""
    from numcodecs.zstd import Zstd

    return Zstd(level=1, checksum=True)


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
    def create(path: Path, about: Mapping[str, Any], cells: int, fields: int, times: int):
        """An empty one; it appears whole, or not at all."""
        path = Path(path)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            made = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
        except OSError as error:
            raise ValueError(f"store = {path} cannot be written to: {error}.") from None
        try:
            group = zarr().open_group(made, mode="w")
            zstd = zarr().codecs.ZstdCodec(level=1, checksum=True)
            # All chunks of an array in one folder, so that one sync settles their names.
            flat = dict(name="default", separator=".")
            shared = dict(compressors=[zstd], chunk_key_encoding=flat)
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
            with contextlib.suppress(OSError):
                # Another worker may have been quicker: then its store is the one.
                os.rename(made, path)
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
        if done.all():
            return np.asarray(self._results[:])
        found = np.full(self._results.shape, np.nan)
        some = np.flatnonzero(done)
        if len(some):
            found[some] = self._results.oindex[some]
        return found

    def write(self, cells: Sequence[int], results: Sequence[np.ndarray]) -> None:
        """The results, and when they are on the disk the flags."""
        self._put(_RESULTS, cells, (np.ascontiguousarray(x, "<f8") for x in results))
        self._put(_DONE, cells, itertools.repeat(np.ones(1, np.uint8)))

    def _put(self, name: str, cells: Sequence[int], chunks: Iterable[np.ndarray]) -> None:
        """Chunks as zarr would write them, whose own way takes twenty times as long for
        small ones, and leaves no moment to sync a file before it gets its name."""
        zstd = zarr_zstd()
        for cell, chunk in zip(cells, chunks, strict=False):
            path = self._chunk(name, cell)
            partial = path.with_name(f"{path.name}.{uuid.uuid4().hex}{_PARTIAL}")
            try:
                with open(partial, "wb") as file:
                    file.write(zstd.encode(chunk))
                    if self.fsync:
                        file.flush()
                        os.fsync(file.fileno())
                os.replace(partial, path)
            except BaseException:
                partial.unlink(missing_ok=True)
                raise
        if self.fsync:
            folder = os.open(self.path / name, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

    def sweep_up(self, older: float = 60.0) -> int:
        """Removes what writers that were killed have begun, and says how much it was."""
        begun = [p for name in (_RESULTS, _DONE) for p in (self.path / name).iterdir()]
        begun = [p for p in begun if p.suffix == _PARTIAL]
        now, removed = time.time(), 0
        for path in begun:
            with contextlib.suppress(FileNotFoundError):
                if now - path.stat().st_mtime > older:  # a younger one may still be written
                    path.unlink()
                    removed += 1
        return removed

    def forget(self, cell: int) -> None:
        """Marks a cell for recomputation."""
        for name in (_DONE, _RESULTS):
            self._chunk(name, cell).unlink(missing_ok=True)

    def damaged(self) -> Iterator[int]:
        """The cells of which a chunk is flipped, cut or gone."""
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
