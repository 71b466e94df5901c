"""Results that survive being killed.

A zarr that is there in full size before the first result: one chunk a cell, in a codec that
knows if a bit has flipped, and a flag for each that is written last. Nothing is ever
appended, and a chunk is either the whole new one or not there.
"""

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

_RESULTS, _DONE, _ABOUT = "results", "done", "about"


def zarr() -> Any:
    try:
        import zarr
    except ImportError as error:
        raise ImportError(
            "A sweep's store needs zarr and xarray: pip install 'inopca_jax[sweep]'."
        ) from error
    return zarr


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
            shared = dict(compressors=[zstd])
            group.create_array(
                _RESULTS,
                shape=(cells, fields, times),
                chunks=(1, fields, times),
                dtype="float64",
                fill_value=np.nan,
                config=dict(write_empty_chunks=True),
                **shared,
            )
            group.create_array(
                _DONE,
                shape=(cells,),
                chunks=(1,),
                dtype="uint8",
                fill_value=0,
                config=dict(write_empty_chunks=True),
                **shared,
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
        root = self._chunk(name, 0).parent
        while root.name != "c":
            root = root.parent
        # A writer that was killed leaves the beginning of a chunk, under another name.
        names = os.listdir(root) if root.exists() else []
        return sorted(int(name) for name in names if name.isdigit())

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
        index = np.asarray(cells)
        self._results.oindex[index] = np.stack(results)
        self._settle(_RESULTS, cells)
        self._done.oindex[index] = np.ones(len(index), np.uint8)
        self._settle(_DONE, cells)

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

    def _settle(self, name: str, cells: Sequence[int]) -> None:
        if not self.fsync:
            return
        chunks = [self._chunk(name, cell) for cell in cells]
        for path in [*chunks, *{chunk.parent for chunk in chunks}]:
            handle = os.open(path, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
