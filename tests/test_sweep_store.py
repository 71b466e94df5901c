"""A sweep's store: killed, damaged, full, shared."""

import os
import subprocess
import sys
import tomllib

import jax.random as jr
import numpy as np
import pytest

import inopca_jax as ino
from inopca_jax._sweep.claims import Claims
from inopca_jax._sweep.store import Store
from inopca_jax.cli import main

from .cases import config
from .test_sweep import study


@pytest.fixture(scope="module")
def plain():
    return study()


def test_damage_of_each_kind_is_found_and_only_that_is_computed_again(plain, tmp_path):
    path = tmp_path / "s.zarr"
    study(store=path)
    store = Store(path)
    flip, cut, gone, flag, unflagged = (
        store._chunk(name, cell)
        for name, cell in (
            ("results", 1),
            ("results", 4),
            ("results", 5),
            ("done", 7),
            ("done", 9),
        )
    )
    for chunk in (flip, flag):
        content = bytearray(chunk.read_bytes())
        content[len(content) // 2] ^= 1
        chunk.write_bytes(content)
    cut.write_bytes(cut.read_bytes()[:-9])
    gone.unlink()
    unflagged.unlink()
    assert list(store.damaged()) == [1, 4, 5, 7, 9]
    others = {c: store._chunk("results", c).stat().st_mtime_ns for c in (0, 2, 11)}
    assert main(["sweep", "verify", str(path)]) == 0
    assert list(np.flatnonzero(~store.done())) == [1, 4, 5, 7, 9]
    assert not ino.open_sweep(path).done.all()
    assert study(store=path).identical(plain)
    assert others == {c: store._chunk("results", c).stat().st_mtime_ns for c in others}


def tiny(path):
    """A store without a sweep."""
    Store.create(path, {}, 2, 1, 1)
    store = Store(path)
    store.write([0, 1], [np.full((1, 1), 0.25), np.full((1, 1), 0.75)])
    return store


@pytest.mark.parametrize("name", ["results", "done"])
def test_every_bit_and_every_byte_counts(name, tmp_path):
    store = tiny(tmp_path / "s.zarr")
    chunk = store._chunk(name, 1)
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


def test_a_damaged_store_says_how_to_mend_it(tmp_path):
    store = tiny(tmp_path / "s.zarr")
    store._chunk("results", 0).write_bytes(b"?")
    with pytest.raises(ValueError, match="run `inopca sweep verify"):
        store.results()


def test_to_verify_does_not_disturb_a_writer(tmp_path):
    """Who is between a cell's result and its flag."""
    store = tiny(tmp_path / "s.zarr")
    store.forget(1)
    assert main(["sweep", "verify", str(store.path)]) == 0
    store._put("done", [1], [np.ones(1, np.uint8)])
    assert store.results()[1] == 0.75
    assert not list(store.damaged())


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
    done, before = Store(path).done(), Store(path).results()
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
    path = tmp_path / "s.zarr"
    study(store=path)
    begun = [path / "results" / f"c.3.0.0.{x}.partial" for x in "ab"]
    for file in begun:
        file.write_bytes(b"half")
    made = tmp_path / ".s.zarr.abc"
    made.mkdir()
    for file in (begun[0], made):
        os.utime(file, (0, 0))
    assert Store(path).done().all()
    assert main(["sweep", "verify", str(path)]) == 0
    assert not begun[0].exists()
    assert not made.exists()
    assert begun[1].exists()  # somebody may be writing it


def test_the_claims_of_the_dead_are_taken_over(tmp_path):
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    with Claims(tmp_path) as one, Claims(tmp_path) as other:
        assert one.take("a")
        assert not other.take("a")
        one.release("a")
        assert other.take("a")
        folder = tmp_path / ".claims"
        host = (folder / "a").read_text()
        (folder / "b").write_text(host.replace(str(os.getpid()), str(dead.pid)))
        assert one.take("b")
        (folder / "c").write_text('{"host": "elsewhere", "pid": 1}')
        assert not one.take("c")
        os.utime(folder / "c", (0, 0))
        assert one.take("c")
        (folder / "d").write_text('{"ho')
        assert not one.take("d")
        os.utime(folder / "d", (0, 0))
        assert one.take("d")
    assert not list((tmp_path / ".claims").iterdir())
