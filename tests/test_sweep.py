"""Sweeps: the same bits however they are run, and nothing lost."""

import contextlib
import os
import random
import signal
import subprocess
import sys
import textwrap
import time

import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
import xarray as xr

import inopca_jax as ino
from inopca_jax._sweep import store as store_module
from inopca_jax._sweep.claims import Claims
from inopca_jax._sweep.store import Store
from inopca_jax.cli import main

from .cases import config

GRID = {"rule.tau": [0.2, 0.5, 0.8], "model.omega": [0.5, 1.0, 2.0, 3.0]}
STUDY = dict(p=60, ts=(0.0, 1.0, 2.0))
KEY = jr.key(3)


def study(**more):
    return ino.sweep(config(**STUDY), GRID, trials=6, key=KEY, **more)


@pytest.fixture(scope="module")
def plain():
    return study()


def test_a_cell_is_what_simulate_makes_of_its_config(plain):
    """With the cell's number folded into the key; up to the rounding of another program."""
    for i, j in ((0, 0), (1, 2), (2, 3)):
        tau, omega = GRID["rule.tau"][i], GRID["model.omega"][j]
        one = config(ino.InoPCA(tau), omega=omega, **STUDY)
        runs = ino.simulate(one, key=jr.fold_in(KEY, 4 * i + j), trials=6)
        cell = plain.isel({"rule.tau": i, "model.omega": j})
        assert np.allclose(cell.q_mean, runs.mean().q, atol=1e-5)
        assert np.allclose(cell.lam_std, runs.std().lam, atol=1e-5)
        assert np.allclose(cell.abs_q_mean, runs.abs().mean().q, atol=1e-5)


def test_a_grid_takes_parts_static_numbers_and_names_that_vary_together():
    grid = {
        "rule": [ino.InoPCA(), ino.Oja()],
        "model.p": [40, 60],
        ("rule.tau", "start.lam0"): [(0.2, 1.0), (0.4, 2.0)],
    }
    found = ino.sweep(
        config(**STUDY), grid, trials=4, key=KEY, observables=("trials",), theory=True
    )
    assert found.q_trials.shape == (2, 2, 2, 4, 3)
    assert list(found["model.p"].values) == [40, 60]
    assert list(found["start.lam0"].values) == [1, 2]
    for r, rule in enumerate((ino.InoPCA, ino.Oja)):
        exact = ino.mean_field(config(rule(0.4), start=ino.WarmStart(0.3, 2.0), **STUDY))
        assert np.allclose(found.q_theory[r, 0, 1], exact.q, atol=1e-5)
        assert np.allclose(found.lam_theory[r, 0, 1], exact.lam, atol=1e-5)
    lam = found.lam_trials[:, :, :, :, 0]
    assert np.allclose(lam[0, :, 1], 2, rtol=1e-5)  # INO-PCA keeps its start's norm
    assert np.allclose(lam[1], 1, rtol=1e-5)  # and Oja projects it away


@pytest.mark.slow
def test_quantiles_and_bars_are_what_they_say():
    found = ino.sweep(
        config(**STUDY),
        {"rule.tau": [0.2, 0.5]},
        trials=50,
        key=KEY,
        observables=("quantiles", "std", "trials"),
        theory="bars",
    )
    levels = found["quantile"].values
    expected = np.quantile(found.q_trials.values, levels, axis=1).transpose(1, 0, 2)
    assert np.allclose(found.q_quantiles, expected)
    assert np.allclose(found.q_std_theory[:, -1], found.q_std[:, -1], rtol=0.4)


def test_a_cell_that_diverges_is_flagged_and_the_rest_complete():
    found = ino.sweep(
        config(ino.Cubic(0.1), p=10, ts=(0.0, 30.0)),
        {"rule.tau": [0.1, 15.0]},
        trials=8,
        key=KEY,
    )
    assert found.finite[0] == 8
    assert found.finite[1] < 8
    assert bool(found.done.all())
    assert np.all(np.isfinite(found.q_mean[0]))


def test_a_store_has_the_bits_of_a_sweep_without_one(plain, tmp_path):
    path = tmp_path / "s.zarr"
    assert study(store=path).identical(plain)
    assert ino.open_sweep(path).identical(plain)
    assert study(store=path, fsync=False).identical(plain)  # nothing is left to do


RUN = textwrap.dedent("""
    import sys
    from tests.test_sweep import study
    study(store=sys.argv[1])
    """)


def start(path, devices=1):
    flags = f"--xla_force_host_platform_device_count={devices}"
    env = os.environ | dict(XLA_FLAGS=f"{os.environ.get('XLA_FLAGS', '')} {flags}")
    return subprocess.Popen([sys.executable, "-c", RUN, str(path)], env=env)


@pytest.mark.parametrize("devices", [4])
def test_the_bits_are_those_of_one_device(devices, plain, tmp_path):
    assert start(tmp_path / "s.zarr", devices).wait() == 0
    assert ino.open_sweep(tmp_path / "s.zarr").identical(plain)


def test_two_workers_of_which_one_is_killed_complete_it(plain, tmp_path):
    path = tmp_path / "s.zarr"
    workers = [start(path), start(path)]
    while not path.exists():
        time.sleep(0.01)
    time.sleep(1.0)
    workers[0].send_signal(signal.SIGKILL)
    assert [w.wait() for w in workers][1] == 0
    assert ino.open_sweep(path).identical(plain)


WRITER = textwrap.dedent("""
    # Forks a process that writes all missing cells, for each line that it reads: what is
    # slow, to import, is done once.
    import os, runpy, sys, zarr
    import numpy as np
    Store = runpy.run_path(sys.argv[1])["Store"]
    rows = np.load(sys.argv[3])
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            store = Store(sys.argv[2])
            for cell in np.flatnonzero(~store.done()).tolist():
                store.write([cell], [rows[cell]])
            os._exit(0)
        print(child, flush=True)
        os.waitpid(child, 0)
        print("ended", flush=True)
    """)


def test_a_store_whose_writer_is_killed_50_times_loses_nothing(plain, tmp_path):
    """It opens every time, and what is marked is there and right, until all is."""
    path, pauses, rounds = tmp_path / "s.zarr", random.Random(0), 0
    study(store=path)
    rows, store = Store(path).results(), Store(path)
    np.save(tmp_path / "rows.npy", rows)
    command = [sys.executable, "-c", WRITER, store_module.__file__, str(path)]
    with subprocess.Popen(
        [*command, str(tmp_path / "rows.npy")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as writers:
        assert writers.stdin is not None
        assert writers.stdout is not None
        caught, before = 0, np.ones(12, bool)
        for _ in range(50):
            if before.all():
                for cell in range(12):
                    store.forget(cell)
                before, rounds = np.zeros(12, bool), rounds + 1
            writers.stdin.write("go\n")
            writers.stdin.flush()
            child = int(writers.stdout.readline())
            time.sleep(pauses.uniform(0.0, 0.15))
            with contextlib.suppress(ProcessLookupError):  # it was done
                os.kill(child, signal.SIGKILL)
            assert writers.stdout.readline() == "ended\n"
            done, found = Store(path).done(), Store(path).results()
            assert np.all(done >= before)
            assert np.array_equal(found[done], rows[done])
            caught += 0 < np.sum(done & ~before) < np.sum(~before)
            before = done
        writers.stdin.close()
    assert rounds > 2
    assert caught > 5  # in the middle of it
    assert study(store=path).identical(plain)


@pytest.mark.slow
def test_a_sweep_that_is_killed_50_times_has_the_bits_of_one_that_is_not(plain, tmp_path):
    path, pauses = tmp_path / "s.zarr", random.Random(0)
    for _ in range(50):
        worker = start(path)
        time.sleep(pauses.uniform(3.0, 9.0))
        worker.kill()
        worker.wait()
        if path.exists():
            found, done = ino.open_sweep(path), Store(path).done().reshape(3, 4)
            assert np.array_equal(found.q_mean.values[done], plain.q_mean.values[done])
            for cell in pauses.sample(range(12), 3):
                Store(path).forget(cell)
    assert study(store=path).identical(plain)


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


def test_a_full_disk_is_named_and_the_sweep_can_go_on(plain, tmp_path, monkeypatch):
    path, write, calls = tmp_path / "s.zarr", Store.write, []

    def full(self, cells, results):
        if calls:
            raise OSError(28, "No space left on device")
        calls.append(1)
        write(self, cells[:3], results[:3])
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Store, "write", full)
        with pytest.raises(OSError, match="No space left"):
            study(store=path)
    assert Store(path).done().sum() == 3
    assert study(store=path).identical(plain)


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
    assert not list((tmp_path / ".claims").iterdir())


def test_a_store_of_another_sweep_is_refused_with_what_differs(tmp_path):
    path = tmp_path / "s.zarr"
    study(store=path)
    before = sorted(p.stat().st_mtime_ns for p in path.rglob("*"))
    for changed, message in (
        (dict(trials=7), "trials: 6 there, 7 here"),
        (dict(key=jr.key(4)), "key: "),
        (dict(grid={"rule.tau": [0.2]}), "grid: "),
        (dict(config=config(p=70, ts=(0.0, 1.0, 2.0))), "structure: "),
    ):
        call = dict(config=config(**STUDY), grid=GRID, trials=6, key=KEY) | changed
        with pytest.raises(ValueError, match=message):
            ino.sweep(**call, store=path)
    assert before == sorted(p.stat().st_mtime_ns for p in path.rglob("*"))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (dict(grid={"rule.taw": [1.0]}), "Did you mean 'rule.tau'"),
        (dict(grid={"model.omga": [1.0]}), "Did you mean 'model.omega'"),
        (dict(grid={"rule.tau": []}), "empty"),
        (dict(grid={}), "grid = "),
        (dict(grid={"rule.tau": [0.1, -0.1]}), "tau = -0.1"),
        (dict(grid={"rule.tau": ["a"]}), "'a'"),
        (dict(grid={"rule.tau": 0.1}), "pass a list"),
        (dict(grid={"rule.tau": [0.1], ("rule.tau", "start.lam0"): [(1.0, 1.0)]}), "twice"),
        (dict(grid={("rule.tau", "start.lam0"): [(1.0,)]}), "one value for each"),
        (dict(trials=0), "trials = 0"),
        (dict(observables=("median",)), "'median'"),
        (dict(observables=()), "empty"),
        (dict(theory="all"), "theory = 'all'"),
    ],
)
def test_bad_sweeps_are_refused_before_anything_is_written(call, message, tmp_path):
    whole = dict(config=config(**STUDY), grid=GRID, trials=6, key=KEY) | call
    with pytest.raises(ValueError, match=message):
        ino.sweep(**whole, store=tmp_path / "s.zarr")
    assert not list(tmp_path.iterdir())


def test_a_path_that_holds_something_else_is_refused(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b").write_text("mine")
    for path in (tmp_path / "a", tmp_path / "a" / "b"):
        with pytest.raises(ValueError, match="is not a sweep's store"):
            study(store=path)
    assert (tmp_path / "a" / "b").read_text() == "mine"


SPEC = """
[config]
p = 60
ts = [0, 1, 2]
q0 = 0.3

[grid]
"rule.tau" = [0.2, 0.5, 0.8]
"model.omega" = { from = 0.5, to = 2.0, count = 4, log = true }

[run]
trials = 5
seed = 1
"""


def test_the_command_runs_resumes_draws_and_exports(tmp_path, capsys):
    spec, store = tmp_path / "spec.toml", tmp_path / "s.zarr"
    spec.write_text(SPEC)
    for _ in range(2):
        assert main(["sweep", "run", str(spec), "--store", str(store)]) == 0
        assert "12 of 12 cells are done" in capsys.readouterr().out
    assert main(["sweep", "status", str(store)]) == 0
    figure, file = tmp_path / "f.png", tmp_path / "f.nc"
    assert main(["sweep", "plot", str(store), "--out", str(figure)]) == 0
    assert main(["sweep", "export", str(store), "--out", str(file)]) == 0
    assert figure.stat().st_size > 10_000
    found = ino.open_sweep(store)
    assert np.allclose(found["model.omega"], np.geomspace(0.5, 2, 4))
    with xr.open_dataset(file, engine="scipy") as written:
        assert np.array_equal(written.q_mean, found.q_mean)
    study = config(p=60, ts=(0, 1, 2))
    grid = {"rule.tau": [0.2, 0.5, 0.8], "model.omega": np.geomspace(0.5, 2, 4)}
    same = ino.sweep(study, grid, trials=5, key=jr.key(1))
    assert np.array_equal(same.q_mean, found.q_mean)


def test_ctrl_c_keeps_what_is_done(tmp_path, monkeypatch, capsys):
    spec, store = tmp_path / "spec.toml", tmp_path / "s.zarr"
    spec.write_text(SPEC)
    write = Store.write

    def interrupted(self, cells, results):
        write(self, cells, results)
        raise KeyboardInterrupt

    monkeypatch.setattr(Store, "write", interrupted)
    with pytest.raises(SystemExit) as end:
        main(["sweep", "run", str(spec), "--store", str(store)])
    assert end.value.code == 130
    assert "goes on from here" in capsys.readouterr().err
    assert Store(store).done().any()


BAD_SPECS = {
    '"model.omega" = { from': ('"model.omga" = { from', "model.omga"),
    "p = 60": ("p = true", "config.p = True"),
    "q0 = 0.3": ("qo = 0.3", "config.qo is not known"),
    "[0.2, 0.5, 0.8]": ("[]", "empty"),
    "trials = 5": ("trials = 0", "trials = 0"),
    "seed = 1": ("seeds = 1", "run.seeds is not known"),
    "[grid]": ("[grit]", "grit is not known"),
    "count = 4, ": ("", "needs from, to and count"),
    "ts = [0, 1, 2]": ('ts = "x"', "config.ts = 'x'"),
    "[run]": ("[run", "is not TOML"),
}


@pytest.mark.parametrize("old", BAD_SPECS)
def test_a_bad_spec_is_one_line_and_exit_code_2(old, tmp_path, capsys):
    new, message = BAD_SPECS[old]
    (tmp_path / "spec.toml").write_text(SPEC.replace(old, new))
    command = ["sweep", "run", str(tmp_path / "spec.toml"), "--store"]
    assert main([*command, str(tmp_path / "s.zarr")]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert len(error.splitlines()) == 1
    assert [p.name for p in tmp_path.iterdir()] == ["spec.toml"]


def test_a_store_that_cannot_be_is_one_line_and_exit_code_2(tmp_path, capsys):
    (tmp_path / "spec.toml").write_text(SPEC)
    (tmp_path / "file").write_text("")
    command = ["sweep", "run", str(tmp_path / "spec.toml"), "--store"]
    assert main([*command, str(tmp_path / "file" / "s.zarr")]) == 2
    assert "cannot be written to" in capsys.readouterr().err
    assert main(["sweep", "status", str(tmp_path / "none.zarr")]) == 2
    assert main(["sweep", "run", str(tmp_path / "none.toml"), "--store", "s.zarr"]) == 2


def test_no_cell_compiles_again():
    from inopca_jax._sweep import lanes

    small = dict(trials=3, key=KEY)
    ino.sweep(config(p=50, ts=(0.0, 0.5)), {"rule.tau": [0.1, 0.2]}, **small)
    before = lanes._advance._cached._cache_size()
    grid = {"rule.tau": list(jnp.linspace(0.1, 1, 40)), "model.omega": [0.5, 2.0]}
    ino.sweep(config(p=50, ts=(0.0, 0.5)), grid, **small)
    assert lanes._advance._cached._cache_size() == before
