"""A sweep's store: killed, damaged, full, shared."""

import importlib.metadata
import os
import subprocess
import sys
import tomllib
from functools import partial

import jax.random as jr
import numpy as np
import pytest
import xarray as xr

import inopca_jax as ino
from inopca_jax._cli.main import main
from inopca_jax._sweep import leases
from inopca_jax._sweep.leases import Leases
from inopca_jax._sweep.store import Store

from .cases import config
from .test_sweep import study


@pytest.fixture(scope="module")
def plain():
    return study()


def flip(file, place=None):
    content = bytearray(file.read_bytes())
    content[len(content) // 2 if place is None else place] ^= 1
    file.write_bytes(content)


def copied(source, target):
    target.write_bytes(source.read_bytes())


def test_damage_of_each_kind_is_found_and_only_that_is_computed_again(plain, tmp_path):
    path = tmp_path / "s.zarr"
    study(store=path)
    store = Store(path)
    result, flag = (partial(store.chunk_path, name) for name in ("results", "flags"))
    assert store.units == 6
    assert not list(store.damaged())
    content = {unit: result(unit).read_bytes() for unit in range(6)}
    flip(result(0))
    result(1).write_bytes(content[1][:-9])
    result(2).unlink()
    flip(flag(3))
    for name in (result, flag):  # both of another unit
        copied(name(5), name(4))
    assert list(store.damaged()) == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match="run `inopca sweep verify"):
        ino.open_sweep(path)
    before = {p: p.read_bytes() for p in (path / "results").iterdir()}
    assert main(["sweep", "verify", str(path)]) == 0
    assert before == {p: p.read_bytes() for p in (path / "results").iterdir()}
    assert list(np.flatnonzero(~store.done())) == [0, 1, 2, 3, 4]
    assert not ino.open_sweep(path).done.all()
    written = result(5).stat().st_mtime_ns
    assert study(store=path).identical(plain)
    assert written == result(5).stat().st_mtime_ns
    assert content == {unit: result(unit).read_bytes() for unit in range(6)}


MANIFEST = dict(
    fields=["finite"],
    config=dict(ts=[0.0]),
    grid=[dict(names=["x"], values=[[1.0], [2.0], [3.0]])],
    unit_cells=2,
    trials=1,
)


def tiny(path, **more):
    """A store without a sweep: three cells in units of two."""
    Store.create(path, MANIFEST | more, np.arange(3))
    store = Store(path)
    store.write(0, np.array([[[0.25]], [[0.75]]]))
    store.write(1, np.array([[[0.5]]]))
    return store


@pytest.mark.parametrize("name", ["results", "flags"])
def test_every_bit_and_every_byte_counts(name, tmp_path):
    store = tiny(tmp_path / "s.zarr")
    chunk = store.chunk_path(name, 1)
    whole = chunk.read_bytes()
    assert not list(store.damaged())
    for i in range(8 * len(whole)):
        flipped = bytearray(whole)
        flipped[i // 8] ^= 1 << i % 8
        chunk.write_bytes(flipped)
        assert list(store.damaged()) == [1], i
    for length in range(len(whole)):
        chunk.write_bytes(whole[:length])
        assert list(store.damaged()) == [1], length


def test_a_chunk_of_another_sweep_is_found(tmp_path):
    one, other = tiny(tmp_path / "1.zarr"), tiny(tmp_path / "2.zarr", trials=2)
    for name in ("results", "flags"):
        copied(other.chunk_path(name, 0), one.chunk_path(name, 0))
    assert list(one.damaged()) == [0]


EDITS = {
    "the order of bytes": ("results/zarr.json", b'"little"', b'"big"'),
    "the separator": ("results/zarr.json", b'"separator": "."', b'"separator": "/"'),
    "the separator of flags": ("flags/zarr.json", b'"separator": "."', b'"separator": "/"'),
    "the manifest": ("manifest.json", b'"trials": 1', b'"trials": 9'),
    "a coordinate": ("cell/zarr.json", b"int64", b"uint8"),
    "all metadata in one": ("zarr.json", b'"little"', b'"big"'),
}


@pytest.mark.parametrize("what", EDITS)
def test_damaged_metadata_is_named_and_nothing_is_touched(what, tmp_path, capsys):
    name, old, new = EDITS[what]
    file = tiny(tmp_path / "s.zarr").path / name
    assert old in file.read_bytes()
    file.write_bytes(file.read_bytes().replace(old, new))
    files = [p for p in tmp_path.rglob("*") if p.is_file()]
    before = {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in files}
    for command in ("verify", "status"):
        assert main(["sweep", command, str(tmp_path / "s.zarr")]) == 2
        error = capsys.readouterr().err
        assert f"{name}, which describes the results, is damaged" in error
        assert len(error.splitlines()) == 1
    assert before == {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in before}


def test_damaged_metadata_can_be_copied_from_a_new_store_of_the_sweep(tmp_path):
    store = tiny(tmp_path / "s.zarr")
    for name in ("manifest.json", "results/zarr.json"):
        (store.path / name).write_bytes(b"?")
    Store.create(tmp_path / "new.zarr", MANIFEST, np.arange(3))
    for name in ("manifest.json", "results/zarr.json"):
        copied(tmp_path / "new.zarr" / name, store.path / name)
    assert np.array_equal(Store(store.path).results()[:, 0, 0], [0.25, 0.75, 0.5])


def test_xarray_opens_a_store_as_it_is(plain, tmp_path):
    study(store=tmp_path / "s.zarr")
    found = xr.open_zarr(tmp_path / "s.zarr")
    field = found.results.attrs["fields"].index("q_mean")
    rows = found.results.isel(field=field).values
    expected = plain.q_mean.values.reshape(-1, 3)[found.cell.values]
    np.testing.assert_array_equal(rows, expected)
    for name in ("rule.tau", "model.omega"):
        labels = plain[name].broadcast_like(plain.done).transpose(*plain.done.dims)
        assert np.array_equal(found[name], labels.values.ravel()[found.cell])
    assert list(found.time) == [0, 1, 2]


def test_a_store_that_is_being_filled_shows_no_cell_as_done_without_its_result(
    tmp_path, monkeypatch
):
    """A unit is finished by another process while the others are read."""
    path = tmp_path / "s.zarr"
    study(store=path)
    Store(path).invalidate(5)
    read, whole = Store.read, Store(path).read(0)

    def read_and_finish(self, unit):
        if unit == 0:
            self.write(5, whole)
        return read(self, unit)

    monkeypatch.setattr(Store, "read", read_and_finish)
    found = ino.open_sweep(path)
    assert Store(path).is_done(5)
    assert found.done.values.sum() == 10
    assert np.all(np.isfinite(found.q_mean.values) == found.done.values[..., None])


def test_an_older_store_is_refused_with_a_sentence(tmp_path):
    (tmp_path / "zarr.json").write_text('{"attributes": {"about": {}}}')
    with pytest.raises(ValueError, match="written by an older version of inopca_jax"):
        Store(tmp_path)


def test_a_store_of_other_versions_is_read_and_not_continued(tmp_path, monkeypatch):
    path = tmp_path / "s.zarr"
    found = study(store=path)
    version = importlib.metadata.version
    other = lambda name: "0.0.1" if name == "jaxlib" else version(name)
    monkeypatch.setattr(importlib.metadata, "version", other)
    assert study(store=path).identical(found)  # nothing is left to compute
    Store(path).invalidate(1)
    with pytest.raises(ValueError, match=r"\(jaxlib .* in the store, 0.0.1 installed\)"):
        study(store=path)


def test_files_that_are_not_of_a_store_are_named_and_left(tmp_path, capsys):
    """Within it and beside it, however old."""
    store = tiny(tmp_path / "data")
    strays = [store.path / "flags" / "c.999.0", store.path / "results" / "notes.partial"]
    names = [".data.backup", ".data.0.making", f".data.{'a' * 32}.making", ".datax"]
    for name in names:
        (tmp_path / name).mkdir()
        strays.append(tmp_path / name / "mine")
    (store.path / ".leases").mkdir()
    strays.append(store.path / ".leases" / "notes")
    for file in strays:
        file.write_text("mine")
    for file in (*strays, *(tmp_path / name for name in names)):
        os.utime(file, (0, 0))
    assert main(["sweep", "verify", str(store.path)]) == 0
    text = capsys.readouterr().out
    assert "flags/c.999.0 does not belong to this store" in text
    assert "results/notes.partial does not belong to this store" in text
    assert all(file.read_text() == "mine" for file in strays)
    assert main(["sweep", "status", str(store.path)]) == 0


def test_to_verify_does_not_disturb_a_writer(tmp_path):
    """Who is between a unit's result and its flag."""
    store = tiny(tmp_path / "s.zarr")
    content, flag = (
        store.chunk_path(name, 1).read_bytes() for name in ("results", "flags")
    )
    flip(store.chunk_path("flags", 1))
    assert main(["sweep", "verify", str(store.path)]) == 0
    assert not store.is_done(1)
    store.chunk_path("flags", 1).write_bytes(flag)
    assert store.read(1) == 0.5
    assert store.chunk_path("results", 1).read_bytes() == content


@pytest.fixture
def small_disk(tmp_path):
    """A file system of its own, and how to make it larger."""
    mount = lambda options: subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(tmp_path)], capture_output=True
    )
    if mount("size=100k").returncode != 0:
        pytest.skip("it takes root to mount a small file system")
    yield tmp_path, lambda: mount("remount,size=10m")
    subprocess.run(["umount", str(tmp_path)], check=True)


FULL = """
[config]
p = 20
ts = [0, 1, 2]
[grid]
"rule.tau" = { from = 0.1, to = 1.0, count = 24 }
[run]
trials = 300
"""


def test_a_full_disk_is_named_and_the_sweep_can_go_on(small_disk, capsys):
    folder, enlarge = small_disk
    spec, path = folder / "spec.toml", folder / "s.zarr"
    spec.write_text(FULL)
    command = ["sweep", "run", str(spec), "--store", str(path)]
    assert main(command) == 2
    assert "No space left on device" in capsys.readouterr().err
    done, before = Store(path).done_cells(), Store(path).results()
    assert 0 < done.sum() < 24
    enlarge()
    assert main(command) == 0
    after = Store(path).results()
    assert np.array_equal(after[done], before[done])
    given = tomllib.loads(FULL)["grid"]["rule.tau"]
    taus = np.linspace(given["from"], given["to"], given["count"])
    study = config(p=20, ts=(0, 1, 2), start=ino.WarmStart(0.1))
    plain = ino.sweep(study, {"rule.tau": taus}, trials=300, key=jr.key(0))
    assert ino.open_sweep(path).identical(plain)


def test_what_a_killed_writer_had_begun_is_swept_up(tmp_path):
    store = tiny(tmp_path / "s.zarr")
    name = lambda letter: f"c.1.0.0.{letter * 32}.partial"
    begun = [store.path / "results" / name(letter) for letter in "ab"]
    for file in begun:
        file.write_bytes(b"half")
    made = tmp_path / f".s.zarr.{'c' * 32}.making"
    made.mkdir()
    (made / "manifest.json").write_text('{"format": "inopca_jax sweep store 2"}')
    for file in (begun[0], made):
        os.utime(file, (0, 0))
    assert main(["sweep", "verify", str(store.path)]) == 0
    assert not begun[0].exists()
    assert not made.exists()
    assert begun[1].exists()  # somebody may be writing it


def test_the_leases_of_the_dead_are_taken_over(tmp_path):
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    with Leases(tmp_path) as one, Leases(tmp_path) as other:
        assert one.take(1)
        assert not other.take(1)
        one.release(1)
        assert other.take(1)
        folder = tmp_path / ".leases"
        host = (folder / "1").read_text()
        (folder / "2").write_text(host.replace(str(os.getpid()), str(dead.pid)))
        assert one.take(2)
    assert not list(folder.iterdir())


@pytest.mark.parametrize("hours", [-2, -1, 0, 1, 2])
@pytest.mark.parametrize(
    "content", ['{"host": "elsewhere", "pid": 1}', "{}", "", "[", "[1]", '{"pid": "x"}']
)
def test_a_lease_is_dead_if_nothing_about_it_changes(hours, content, tmp_path, monkeypatch):
    """By the clock of who looks at it: the date of the file may be of any other clock."""
    clock = [0.0]
    monkeypatch.setattr(leases.time, "monotonic", lambda: clock[0])
    mine = Leases(tmp_path)
    file = tmp_path / ".leases" / "7"
    file.write_text(content)
    date = file.stat().st_mtime + 3600 * hours
    for beat in range(3):  # it lives
        os.utime(file, (date + beat, date + beat))
        assert not mine.take(7)
        clock[0] += leases.STALE - 1
        assert not mine.take(7)
    clock[0] += 2
    assert mine.take(7)
    mine.release(7)
