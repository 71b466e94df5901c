"""The store of a sweep: files that stay valid if the process is killed at any time.

A store is a zarr group that is created in its full size before the first result:

    manifest.json     what the results depend on, and checksums of the other metadata files
    results/c.U.0.0   the results of unit U: one chunk for all its cells
    flags/c.U.0       a checksum of that chunk, of U and of the manifest, written last
    cell, time, ...   coordinates, which `xarray.open_zarr` shows
    .leases/          which process computes which unit

A unit is done if it has a flag. A chunk that was changed, truncated, or copied from another
unit or another sweep does not match its flag. Nothing is ever appended: every file is
written under a temporary name, synced to the disk, and renamed.
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
"""The folder of leases, which say which process computes which unit."""

_MANIFEST, _RESULTS, _FLAGS = "manifest.json", "results", "flags"
_CHUNK = re.compile(r"c\.(\d+)(\.0)+")
_ID = "[0-9a-f]{32}"
_PARTIAL = re.compile(rf"c\.(\d+)(\.0)+\.{_ID}\.partial")
_LEASE = re.compile(rf"(\d+)(\.{_ID})?")
_FLAG_BYTES = hashlib.sha256().digest_size
_INVALID = bytes(_FLAG_BYTES)
"""In place of a flag: the unit has to be computed again."""

_POINTS = {
    _RESULTS: [point for point in Point if point.name.startswith("RESULT_")],
    _FLAGS: [point for point in Point if point.name.startswith("FLAG_")],
}


def _zarr() -> Any:
    """Returns the module `zarr`, which is an optional dependency."""
    try:
        import zarr
    except ImportError as error:
        raise ImportError(
            "A sweep's store needs zarr and xarray: pip install 'inopca_jax[sweep]'."
        ) from error
    return zarr


class Store:
    """The results of a sweep on disk, read and written by units.

    **Arguments:**

    - `path`: an existing store. A `ValueError` is raised if its metadata are damaged.
    - `fsync`: whether writing waits until the files are on the disk.
    """

    def __init__(self, path: Path, fsync: bool = True):
        self.path, self.fsync = Path(path), fsync
        header = _read_header(self.path)
        self.manifest: dict[str, Any] = header["manifest"]
        for name, digest in header["files"].items():
            _require_digest(self.path, name, digest)
        self.order: np.ndarray = np.asarray(
            _zarr().open_group(self.path, mode="r")["cell"][:]
        )
        """The indices of the cells in the grid, in the order of the units."""
        self.unit_cells: int = self.manifest["unit_cells"]
        self.units: int = -(-len(self.order) // self.unit_cells)
        self._cell_shape = _cell_shape(self.manifest)
        self._fingerprint = hashlib.sha256(_json(self.manifest)).digest()

    @staticmethod
    def create(
        path: Path, manifest: Mapping[str, Any], order: np.ndarray, fsync: bool = True
    ) -> None:
        """Creates an empty store under a temporary name and renames it.

        If another process has created it in the meantime, that store is left as it is.

        **Arguments:**

        - `manifest`: what `manifest.describe` returns.
        - `order`: shape `(cells,)`, the indices of the cells in the grid, in the order of
            the units.
        """
        path = Path(path)
        making = path.with_name(f".{path.name}.{uuid.uuid4().hex}.making")
        try:
            making.mkdir(parents=True)
        except OSError as error:
            raise ValueError(f"store = {path} cannot be written to: {error}.") from None
        try:
            # First, so that `remove_leftovers` recognises the folder if this is killed.
            (making / _MANIFEST).write_bytes(_json(dict(format=FORMAT)))
            _create_arrays(making, manifest, np.asarray(order))
            files = [p for p in making.rglob("*") if p.is_file() and p.name != _MANIFEST]
            digests = {str(p.relative_to(making)): _digest(p) for p in sorted(files)}
            header = _json(dict(format=FORMAT, manifest=manifest, files=digests))
            (making / _MANIFEST).write_bytes(_with_checksum(header))
            for entry in (making, *making.rglob("*")) if fsync else ():
                _sync(entry)
            reach(Point.STORE_MADE)
            with contextlib.suppress(OSError):
                # Fails if another process was faster: then its store is used.
                os.rename(making, path)
            reach(Point.STORE_NAMED)
            if fsync:
                _sync(path.parent)
        finally:
            shutil.rmtree(making, ignore_errors=True)

    def cells(self, unit: int) -> np.ndarray:
        """Returns the indices in the grid of a unit's cells."""
        return self.order[unit * self.unit_cells : (unit + 1) * self.unit_cells]

    def done(self) -> np.ndarray:
        """Returns which units are finished, of shape `(units,)`."""
        done = np.zeros(self.units, bool)
        for unit in self._units_with_file(_FLAGS):
            done[unit] = self.is_done(unit)
        return done

    def is_done(self, unit: int) -> bool:
        """Whether a unit is finished."""
        flag = self._flag(unit)
        return flag is not None and len(flag) == _FLAG_BYTES and flag != _INVALID

    def done_cells(self, done: np.ndarray | None = None) -> np.ndarray:
        """Returns which cells are finished, of shape `(cells,)` in the grid's order: those
        of the units that are `done`, which by default is read from the store."""
        done = self.done() if done is None else done
        done_cells = np.zeros(len(self.order), bool)
        done_cells[self.order] = np.repeat(done, self.unit_cells)[: len(self.order)]
        return done_cells

    def read(self, unit: int) -> np.ndarray:
        """Returns the results of a finished unit, of shape `(cells, fields, times)`."""
        chunk = self._valid_chunk(unit)
        if chunk is None:
            raise ValueError(
                f"store = {self.path} is damaged (unit {unit}): run `inopca sweep verify "
                f"{self.path}`, which marks damaged cells, and then the sweep again."
            )
        rows = np.frombuffer(_decoded(chunk), "<f8")
        return rows.reshape(self.unit_cells, *self._cell_shape)[: len(self.cells(unit))]

    def results(self, done: np.ndarray | None = None) -> np.ndarray:
        """Returns the results of the units that are `done` (by default read from the store)
        and NaN for the others, of shape `(cells, fields, times)` in the grid's order."""
        done = self.done() if done is None else done
        results = np.full((len(self.order), *self._cell_shape), np.nan)
        for unit in np.flatnonzero(done).tolist():
            results[self.cells(unit)] = self.read(unit)
        return results

    def write(self, unit: int, results: np.ndarray) -> None:
        """Writes the results of a unit, of shape `(cells, fields, times)`, and then its
        flag."""
        # zarr expects the last chunk in full size, too.
        chunk = np.full((self.unit_cells, *self._cell_shape), np.nan, "<f8")
        chunk[: len(results)] = results
        content = _encoded(chunk)
        self._write_file(_RESULTS, unit, content)
        self._write_file(_FLAGS, unit, self._checksum(unit, content))

    def invalidate(self, unit: int) -> None:
        """Marks a unit to be computed again. The file of its results is not removed."""
        self._write_file(_FLAGS, unit, _INVALID)

    def damaged(self) -> Iterator[int]:
        """Yields the units that have a flag but no chunk that matches it. A unit without a
        flag is not done, and not damaged."""
        for unit in self._units_with_file(_FLAGS):
            if self._flag(unit) != _INVALID and self._valid_chunk(unit) is None:
                yield unit

    def unknown_files(self) -> list[str]:
        """Returns files among the results and flags that this package does not write."""
        unknown = []
        for name in (_RESULTS, _FLAGS):
            for entry in sorted(os.listdir(self.path / name)):
                match = _CHUNK.fullmatch(entry) or _PARTIAL.fullmatch(entry)
                is_known = match is not None and int(match[1]) < self.units
                if not is_known and entry != "zarr.json":
                    unknown.append(f"{name}/{entry}")
        return unknown

    def remove_leftovers(self, older: float = 3600.0) -> int:
        """Removes temporary files and leases of processes that were killed; returns how
        many.

        Only files with names that this package gives, of units that are done, and that have
        not changed for `older` seconds: a slow process may still be writing a newer one.
        """
        done, removed = self.done(), 0
        is_done = lambda unit: unit < self.units and bool(done[unit])
        for folder, pattern in ((_RESULTS, _PARTIAL), (_FLAGS, _PARTIAL), (LEASES, _LEASE)):
            entries = (
                os.listdir(self.path / folder) if (self.path / folder).is_dir() else ()
            )
            for entry in entries:
                match, path = pattern.fullmatch(entry), self.path / folder / entry
                if match and is_done(int(match[1])) and _is_old_file(path, older):
                    path.unlink(missing_ok=True)
                    removed += 1
        parent, name = self.path.absolute().parent, re.escape(self.path.name)
        for entry in os.listdir(parent):
            if re.fullmatch(rf"\.{name}\.{_ID}\.making", entry):
                removed += _remove_unfinished_store(parent / entry, older)
        return removed

    def _units_with_file(self, name: str) -> list[int]:
        """Returns the units that have a file in the folder `name`."""
        matches = (_CHUNK.fullmatch(entry) for entry in os.listdir(self.path / name))
        units = (int(match[1]) for match in matches if match)
        return sorted({unit for unit in units if unit < self.units})

    def _flag(self, unit: int) -> bytes | None:
        return _content(self.chunk_path(_FLAGS, unit))

    def _valid_chunk(self, unit: int) -> bytes | None:
        """Returns the bytes of a unit's chunk, or None if they do not match its flag."""
        content = _content(self.chunk_path(_RESULTS, unit))
        if content is None or self._flag(unit) != self._checksum(unit, content):
            return None
        return content

    def _checksum(self, unit: int, content: bytes) -> bytes:
        """Returns a checksum of the manifest, the unit's number and the chunk's bytes."""
        number = unit.to_bytes(8, "big")
        return hashlib.sha256(self._fingerprint + number + content).digest()

    def _write_file(self, name: str, unit: int, content: bytes) -> None:
        """Writes the file of a unit's chunk in the folder `name`.

        zarr's own writer takes longer, and cannot sync the file before it is renamed.
        """
        written, synced, named, complete = _POINTS[name]
        path = self.chunk_path(name, unit)
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

    def chunk_path(self, name: str, unit: int) -> Path:
        """Returns the path of a unit's results (`"results"`) or flag (`"flags"`)."""
        zeros = ".0" * (2 if name == _RESULTS else 1)
        return self.path / name / f"c.{unit}{zeros}"


def _cell_shape(manifest: Mapping[str, Any]) -> tuple[int, int]:
    """Returns the shape `(fields, times)` of a cell's results."""
    return len(manifest["fields"]), len(manifest["config"]["ts"])


def _create_arrays(path: Path, manifest: Mapping[str, Any], order: np.ndarray) -> None:
    group = _zarr().open_group(path, mode="a")
    codecs = _zarr().codecs
    shape, size = _cell_shape(manifest), manifest["unit_cells"]
    # All chunks of an array are in one folder, so that one sync of it covers their names.
    shared = dict(chunk_key_encoding=dict(name="default", separator="."))
    axes = [name for axis in manifest["grid"] for name in axis["names"]]
    group.create_array(
        _RESULTS,
        shape=(len(order), *shape),
        chunks=(size, *shape),
        dtype="<f8",
        fill_value=np.nan,
        # zstd's own checksum does not cover its header; crc32c covers the whole chunk.
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
    grid_shape = [len(axis["values"]) for axis in manifest["grid"]]
    indices = np.unravel_index(order, grid_shape)
    for axis, index in zip(manifest["grid"], indices, strict=True):
        columns = zip(*axis["values"], strict=True)
        for name, column in zip(axis["names"], columns, strict=True):
            if any(isinstance(value, str) for value in column):
                # zarr has no standard type for text: indices, and the texts as attribute.
                add(name, "cell", index.astype("<i8"), [str(value) for value in column])
            else:
                add(name, "cell", np.asarray(column, "<f8")[index])
    with warnings.catch_warnings():
        # Consolidated metadata are not yet in zarr's standard, of which zarr warns; without
        # them xarray warns.
        warnings.simplefilter("ignore")
        _zarr().consolidate_metadata(path)


def _json(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True).encode()


def _with_checksum(header: bytes) -> bytes:
    """Returns the header, and its checksum on a second line."""
    return b"%s\n%s\n" % (header, hashlib.sha256(header).hexdigest().encode())


def _read_header(path: Path) -> dict[str, Any]:
    """Returns the manifest, and the checksums of the other metadata files."""
    content = _content(path / _MANIFEST)
    if content is None:
        if b'"about"' in (_content(path / "zarr.json") or b""):
            raise ValueError(
                f"store = {path} was written by an older version of inopca_jax, in a "
                "format that this one does not read: pass another path."
            )
        raise ValueError(
            f"store = {path} is not a sweep's store: pass another path, or remove it."
        )
    line = content.partition(b"\n")[0]
    if content != _with_checksum(line):
        raise _damaged_metadata(path, _MANIFEST)
    header = json.loads(line)
    if header["format"] != FORMAT:
        raise ValueError(
            f"store = {path} has the format {header['format']!r}, and this version reads "
            f"{FORMAT!r}: pass another path."
        )
    return header


def _require_digest(path: Path, name: str, digest: str) -> None:
    if not (path / name).is_file() or _digest(path / name) != digest:
        raise _damaged_metadata(path, name)


def _damaged_metadata(path: Path, name: str) -> ValueError:
    return ValueError(
        f"store = {path}: {name}, which describes the results, is damaged; nothing was "
        f"changed. Start the same sweep with another path, stop it, and copy {name} from "
        "its store: it is the same file."
    )


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _content(path: Path) -> bytes | None:
    """Returns the bytes of a file, or None if it cannot be read."""
    try:
        return path.read_bytes()
    except OSError:
        return None


def _encoded(chunk: np.ndarray) -> bytes:
    """Returns a chunk's bytes, encoded by the codecs that `_create_arrays` names."""
    from numcodecs.checksum32 import CRC32C
    from numcodecs.zstd import Zstd

    packed = Zstd(level=1, checksum=True).encode(chunk)
    return bytes(CRC32C(location="end").encode(np.frombuffer(packed, np.uint8)))


def _decoded(content: bytes) -> bytes:
    """Returns what `_encoded` was given."""
    from numcodecs.checksum32 import CRC32C
    from numcodecs.zstd import Zstd

    packed = CRC32C(location="end").decode(np.frombuffer(content, np.uint8))
    return bytes(Zstd().decode(packed))


def _is_old_file(path: Path, older: float) -> bool:
    """Whether a file exists and has not changed for `older` seconds."""
    try:
        return path.is_file() and time.time() - path.lstat().st_mtime > older
    except OSError:
        return False


def _remove_unfinished_store(path: Path, older: float) -> bool:
    """Removes a store whose creation was killed more than `older` seconds ago; returns
    whether it was removed. It has to be empty or to have the beginning of a manifest."""
    manifest_start = _json(dict(format=FORMAT))[1:-1]
    with contextlib.suppress(OSError):
        if path.is_symlink() or time.time() - path.lstat().st_mtime <= older:
            return False
        if manifest_start in (_content(path / _MANIFEST) or b""):
            shutil.rmtree(path)
        else:
            path.rmdir()  # raises OSError unless it is empty
        return True
    return False


def _sync(path: Path) -> None:
    """Writes a file's content, or a folder's list of names, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
