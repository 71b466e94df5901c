"""Results that survive being killed.

A store is a zarr group that is there in full size before the first result:

    manifest.json     what the results depend on, and a checksum of every other small file
    results/c.U.0.0   the results of unit U: one chunk for all its cells
    flags/c.U.0       a checksum of that chunk, of its place and of the sweep, written last
    cell, time, ...   coordinates, so that `xarray.open_zarr` shows what is what
    .leases/          which process computes what

A unit is done if it has a flag. A chunk that was changed, cut, or copied from another unit
or another sweep does not match its flag. Nothing is ever appended: every file is written
under another name, synced, and renamed.
"""

import contextlib
import hashlib
import json
import os
import re
import shutil
import time
import uuid
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from .points import Point, reach

FORMAT = "inopca_jax sweep store 2"
LEASES = ".leases"
"""The folder that says which process computes what."""

_MANIFEST, _RESULTS, _FLAGS = "manifest.json", "results", "flags"
_CHUNK = re.compile(r"c\.(\d+)(\.0)+")
_ID = "[0-9a-f]{32}"
_PARTIAL = re.compile(rf"c\.(\d+)(\.0)+\.{_ID}\.partial")
_LEASE = re.compile(rf"(\d+)(\.{_ID})?")
_FLAG_BYTES = hashlib.sha256().digest_size
_MARKED = bytes(_FLAG_BYTES)
"""In place of a flag: the unit is to be computed again."""

_POINTS = {
    _RESULTS: (
        Point.RESULT_WRITTEN,
        Point.RESULT_SYNCED,
        Point.RESULT_NAMED,
        Point.RESULT_COMPLETE,
    ),
    _FLAGS: (
        Point.FLAG_WRITTEN,
        Point.FLAG_SYNCED,
        Point.FLAG_NAMED,
        Point.FLAG_COMPLETE,
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


class Store:
    """The results of a sweep, by the numbers of its units."""

    def __init__(self, path: Path, fsync: bool = True):
        self.path, self.fsync = Path(path), fsync
        head = _read_head(self.path)
        self.manifest: dict[str, Any] = head["manifest"]
        for name, digest in head["files"].items():
            _require_digest(self.path, name, digest)
        self.order: np.ndarray = np.asarray(
            zarr().open_group(self.path, mode="r")["cell"][:]
        )
        """The cells' numbers in the grid, unit after unit."""
        self.unit_cells: int = self.manifest["unit_cells"]
        self.units: int = -(-len(self.order) // self.unit_cells)
        self._shape = _shape(self.manifest)
        self._fingerprint = hashlib.sha256(_json(self.manifest)).digest()

    @staticmethod
    def create(
        path: Path, manifest: Mapping[str, Any], order: np.ndarray, fsync: bool = True
    ) -> None:
        """An empty store; it appears whole, or not at all."""
        path = Path(path)
        making = path.with_name(f".{path.name}.{uuid.uuid4().hex}.making")
        try:
            making.mkdir(parents=True)
        except OSError as error:
            raise ValueError(f"store = {path} cannot be written to: {error}.") from None
        try:
            # First of all, so that what is left of it can be told to be ours.
            (making / _MANIFEST).write_bytes(_json(dict(format=FORMAT)))
            _create_arrays(making, manifest, np.asarray(order))
            files = [p for p in making.rglob("*") if p.is_file() and p.name != _MANIFEST]
            digests = {str(p.relative_to(making)): _digest(p) for p in sorted(files)}
            head = _json(dict(format=FORMAT, manifest=manifest, files=digests))
            (making / _MANIFEST).write_bytes(_sealed(head))
            for entry in (making, *making.rglob("*")) if fsync else ():
                _sync(entry)
            reach(Point.STORE_MADE)
            with contextlib.suppress(OSError):
                # Another worker may have been quicker: then its store is the one.
                os.rename(making, path)
            reach(Point.STORE_NAMED)
            if fsync:
                _sync(path.parent)
        finally:
            shutil.rmtree(making, ignore_errors=True)

    def cells(self, unit: int) -> np.ndarray:
        """The numbers in the grid of a unit's cells."""
        return self.order[unit * self.unit_cells : (unit + 1) * self.unit_cells]

    def done(self) -> np.ndarray:
        """Which units are finished."""
        found = np.zeros(self.units, bool)
        for unit in self._written(_FLAGS):
            found[unit] = self.is_done(unit)
        return found

    def is_done(self, unit: int) -> bool:
        flag = self._flag(unit)
        return flag is not None and len(flag) == _FLAG_BYTES and flag != _MARKED

    def done_cells(self, done: np.ndarray | None = None) -> np.ndarray:
        """Which cells are finished, by their numbers in the grid: those of the units that
        are `done`, by default now."""
        done = self.done() if done is None else done
        found = np.zeros(len(self.order), bool)
        found[self.order] = np.repeat(done, self.unit_cells)[: len(self.order)]
        return found

    def read(self, unit: int) -> np.ndarray:
        """The results of a finished unit's cells."""
        chunk = self._whole_chunk(unit)
        if chunk is None:
            raise ValueError(
                f"store = {self.path} is damaged (unit {unit}): run `inopca sweep verify "
                f"{self.path}`, which marks what is, and the sweep again."
            )
        rows = np.frombuffer(_decoded(chunk), "<f8")
        return rows.reshape(self.unit_cells, *self._shape)[: len(self.cells(unit))]

    def results(self, done: np.ndarray | None = None) -> np.ndarray:
        """Those of the units that are `done`, by default now, in the grid's order; not a
        number elsewhere."""
        done = self.done() if done is None else done
        found = np.full((len(self.order), *self._shape), np.nan)
        for unit in np.flatnonzero(done).tolist():
            found[self.cells(unit)] = self.read(unit)
        return found

    def write(self, unit: int, results: np.ndarray) -> None:
        """The results of a unit's cells, and when they are on the disk its flag."""
        # zarr expects the last chunk in full size, too.
        chunk = np.full((self.unit_cells, *self._shape), np.nan, "<f8")
        chunk[: len(results)] = results
        content = _encoded(chunk)
        self._put(_RESULTS, unit, content)
        self._put(_FLAGS, unit, self._checksum(unit, content))

    def mark(self, unit: int) -> None:
        """Has a unit computed again. Its result stays."""
        self._put(_FLAGS, unit, _MARKED)

    def damaged(self) -> Iterator[int]:
        """The units whose chunk and flag do not match, or of which the chunk is gone. If it
        is the flag that is gone, the unit is not done, which is no damage."""
        for unit in self._written(_FLAGS):
            if self._flag(unit) != _MARKED and self._whole_chunk(unit) is None:
                yield unit

    def strays(self) -> list[str]:
        """Names in the folders of results and flags that no writer of this store gives."""
        found = []
        for name in (_RESULTS, _FLAGS):
            for entry in sorted(os.listdir(self.path / name)):
                chunk = _CHUNK.fullmatch(entry) or _PARTIAL.fullmatch(entry)
                ours = chunk is not None and int(chunk[1]) < self.units
                if not ours and entry != "zarr.json":
                    found.append(f"{name}/{entry}")
        return found

    def sweep_up(self, older: float = 3600.0) -> int:
        """Removes what writers that were killed have left, and says how much it was.

        By names that only this package gives, of units that need no writer any more; and
        only if old, as a slow writer may still be at it.
        """
        done, removed = self.done(), 0
        is_done = lambda unit: unit < self.units and bool(done[unit])
        for folder, pattern in ((_RESULTS, _PARTIAL), (_FLAGS, _PARTIAL), (LEASES, _LEASE)):
            entries = (
                os.listdir(self.path / folder) if (self.path / folder).is_dir() else ()
            )
            for entry in entries:
                name, path = pattern.fullmatch(entry), self.path / folder / entry
                if name and is_done(int(name[1])) and _is_old_file(path, older):
                    path.unlink(missing_ok=True)
                    removed += 1
        parent, name = self.path.absolute().parent, re.escape(self.path.name)
        for entry in os.listdir(parent):
            if re.fullmatch(rf"\.{name}\.{_ID}\.making", entry):
                removed += _remove_unfinished(parent / entry, older)
        return removed

    def _written(self, name: str) -> list[int]:
        """The units that have a file there."""
        chunks = (_CHUNK.fullmatch(entry) for entry in os.listdir(self.path / name))
        units = (int(chunk[1]) for chunk in chunks if chunk)
        return sorted({unit for unit in units if unit < self.units})

    def _flag(self, unit: int) -> bytes | None:
        return _content(self.chunk(_FLAGS, unit))

    def _whole_chunk(self, unit: int) -> bytes | None:
        """The unit's chunk, if its flag matches."""
        content = _content(self.chunk(_RESULTS, unit))
        if content is None or self._flag(unit) != self._checksum(unit, content):
            return None
        return content

    def _checksum(self, unit: int, content: bytes) -> bytes:
        """Of the bytes of a chunk, of whose they are, and of which sweep."""
        place = unit.to_bytes(8, "big")
        return hashlib.sha256(self._fingerprint + place + content).digest()

    def _put(self, name: str, unit: int, content: bytes) -> None:
        """Writes a chunk's file. zarr's own way takes longer, and leaves no moment to sync
        the file before it gets its name."""
        written, synced, named, complete = _POINTS[name]
        path = self.chunk(name, unit)
        partial = path.with_name(f"{path.name}.{uuid.uuid4().hex}.partial")
        try:
            with open(partial, "wb") as file:
                file.write(content)
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

    def chunk(self, name: str, unit: int) -> Path:
        """The file of a unit's results or of its flag."""
        zeros = ".0" * (2 if name == _RESULTS else 1)
        return self.path / name / f"c.{unit}{zeros}"


def _shape(manifest: Mapping[str, Any]) -> tuple[int, int]:
    """Of a cell's results."""
    return len(manifest["fields"]), len(manifest["config"]["ts"])


def _create_arrays(path: Path, manifest: Mapping[str, Any], order: np.ndarray) -> None:
    group = zarr().open_group(path, mode="a")
    codecs = zarr().codecs
    shape, size = _shape(manifest), manifest["unit_cells"]
    # All chunks of an array in one folder, so that one sync settles their names.
    shared = dict(chunk_key_encoding=dict(name="default", separator="."))
    axes = [name for axis in manifest["grid"] for name in axis["names"]]
    group.create_array(
        _RESULTS,
        shape=(len(order), *shape),
        chunks=(size, *shape),
        dtype="<f8",
        fill_value=np.nan,
        # zstd's own checksum is not of its header; the other one is of the whole chunk.
        compressors=[codecs.ZstdCodec(level=1, checksum=True), codecs.Crc32cCodec()],
        dimension_names=("cell", "field", "time"),
        attributes=dict(coordinates=" ".join(axes), fields=manifest["fields"]),
        **shared,
    )
    group.create_array(
        _FLAGS,
        shape=(-(-len(order) // size), _FLAG_BYTES),
        chunks=(1, _FLAG_BYTES),
        dtype="uint8",
        fill_value=0,
        compressors=None,
        dimension_names=("unit", "byte"),
        **shared,
    )

    def add(name: str, dimension: str, values: np.ndarray, text: Any = ()) -> None:
        array = group.create_array(
            name,
            shape=values.shape,
            chunks=(max(1, len(values)),),
            dtype=values.dtype,
            dimension_names=(dimension,),
            attributes=dict(text=list(text)) if text else {},
            **shared,
        )
        array[:] = values

    add("time", "time", np.asarray(manifest["config"]["ts"], "<f8"))
    add("cell", "cell", order.astype("<i8"))
    grid = [len(axis["values"]) for axis in manifest["grid"]]
    for axis, place in zip(manifest["grid"], np.unravel_index(order, grid), strict=True):
        for name, column in zip(
            axis["names"], zip(*axis["values"], strict=True), strict=True
        ):
            if any(isinstance(value, str) for value in column):
                # Text has no settled form in zarr: numbers, and what they stand for.
                add(name, "cell", place.astype("<i8"), [str(value) for value in column])
            else:
                add(name, "cell", np.asarray(column, "<f8")[place])
    with warnings.catch_warnings():
        # All metadata in one file is an extension of zarr's; xarray warns without it.
        warnings.simplefilter("ignore")
        zarr().consolidate_metadata(path)


def _json(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True).encode()


def _sealed(head: bytes) -> bytes:
    """With its own checksum."""
    return b"%s\n%s\n" % (head, hashlib.sha256(head).hexdigest().encode())


def _read_head(path: Path) -> dict[str, Any]:
    content = _content(path / _MANIFEST)
    if content is None:
        if b'"about"' in (_content(path / "zarr.json") or b""):
            raise ValueError(
                f"store = {path} was written by an older version of inopca_jax, in a form "
                "that this one does not read: pass another path."
            )
        raise ValueError(
            f"store = {path} is not a sweep's store: pass another path, or remove what is "
            "there."
        )
    head = content.partition(b"\n")[0]
    if content != _sealed(head):
        raise _damaged_metadata(path, _MANIFEST)
    found = json.loads(head)
    if found["format"] != FORMAT:
        raise ValueError(
            f"store = {path} has the format {found['format']!r}, and this version reads "
            f"{FORMAT!r}: pass another path."
        )
    return found


def _require_digest(path: Path, name: str, digest: str) -> None:
    if not (path / name).is_file() or _digest(path / name) != digest:
        raise _damaged_metadata(path, name)


def _damaged_metadata(path: Path, name: str) -> ValueError:
    return ValueError(
        f"store = {path}: {name}, which describes the results, is damaged; nothing was "
        f"changed. Start the same sweep with another path, stop it, and copy {name} from "
        "there: it is the same file."
    )


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _content(path: Path) -> bytes | None:
    """Of a file, if there is one."""
    try:
        return path.read_bytes()
    except OSError:
        return None


def _encoded(chunk: np.ndarray) -> bytes:
    """By the codecs that `_create_arrays` names."""
    from numcodecs.checksum32 import CRC32C
    from numcodecs.zstd import Zstd

    packed = Zstd(level=1, checksum=True).encode(chunk)
    return bytes(CRC32C(location="end").encode(np.frombuffer(packed, np.uint8)))


def _decoded(content: bytes) -> bytes:
    from numcodecs.checksum32 import CRC32C
    from numcodecs.zstd import Zstd

    packed = CRC32C(location="end").decode(np.frombuffer(content, np.uint8))
    return bytes(Zstd().decode(packed))


def _is_old_file(path: Path, older: float) -> bool:
    try:
        return path.is_file() and time.time() - path.lstat().st_mtime > older
    except OSError:
        return False


def _remove_unfinished(path: Path, older: float) -> bool:
    """Removes a store whose creator was killed, if it is one: it has the beginning of our
    manifest, or is empty."""
    begun = _json(dict(format=FORMAT))[1:-1]
    with contextlib.suppress(OSError):
        if path.is_symlink() or time.time() - path.lstat().st_mtime <= older:
            return False
        if begun in (_content(path / _MANIFEST) or b""):
            shutil.rmtree(path)
        else:
            path.rmdir()  # which refuses what is not empty
        return True
    return False


def _sync(path: Path) -> None:
    """A file's content, or a folder's names, to the disk."""
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
