"""Sweeps: the same bits however they are run, and nothing lost."""

import os
import signal
import subprocess
import sys
import textwrap
import time

import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import inopca_jax as ino
from inopca_jax._sweep import lanes, run

from .cases import config, sparing

GRID = {"rule.tau": [0.2, 0.5, 0.8], "model.omega": [0.5, 1.0, 2.0, 3.0]}
STUDY = dict(p=60, ts=(0.0, 1.0, 2.0))
KEY = jr.key(3)
TRIALS = 16


def study(**more):
    return ino.sweep(config(**STUDY), GRID, trials=TRIALS, key=KEY, **more)


@pytest.fixture(scope="module")
def plain():
    return study()


def test_a_cell_is_what_simulate_makes_of_its_config(plain):
    """With the cell's number folded into the key; up to the rounding of another program."""
    for i, j in ((0, 0), (1, 2), (2, 3)):
        tau, omega = GRID["rule.tau"][i], GRID["model.omega"][j]
        one = config(ino.InoPCA(tau), omega=omega, **STUDY)
        runs = ino.simulate(one, key=jr.fold_in(KEY, 4 * i + j), trials=TRIALS)
        cell = plain.isel({"rule.tau": i, "model.omega": j})
        assert np.allclose(cell.q_mean, runs.mean().q, atol=1e-5)
        assert np.allclose(cell.lam_std, runs.std().lam, atol=1e-5)
        assert np.allclose(cell.abs_q_mean, runs.abs().mean().q, atol=1e-5)


def test_a_grid_takes_static_numbers_and_names_that_vary_together():
    grid = {"model.p": [40, 60], ("rule.tau", "start.lam0"): [(0.2, 1.0), (0.4, 2.0)]}
    found = ino.sweep(
        config(**STUDY), grid, trials=4, key=KEY, observables=("trials",), theory=True
    )
    assert found.q_trials.shape == (2, 2, 4, 3)
    assert list(found["model.p"].values) == [40, 60]
    assert list(found["start.lam0"].values) == [1, 2]
    exact = ino.mean_field(config(ino.InoPCA(0.4), start=ino.WarmStart(0.3, 2.0), **STUDY))
    assert np.allclose(found.q_theory[0, 1], exact.q, atol=1e-5)
    assert np.allclose(found.lam_theory[0, 1], exact.lam, atol=1e-5)


def test_a_grid_takes_parts_of_a_config():
    """And what another axis names of them: INO-PCA keeps its start's norm, and Oja's method
    projects it away."""
    grid = {"rule": [ino.InoPCA(), ino.Oja()], "start.lam0": [1.0, 2.0]}
    found = ino.sweep(config(**STUDY), grid, trials=4, key=KEY)
    assert np.allclose(found.lam_mean[:, :, 0], [[1, 2], [1, 1]], rtol=1e-5)
    assert [name.split("(")[0] for name in found["rule"].values] == ["InoPCA", "Oja"]


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
    from inopca_jax._sweep import lanes, run
    from tests.test_sweep import study
    run._TILES = 1  # six units, where `plain` is one: a chunk of another size, as well
    used, inner = set(), lanes.Lanes.run
    def watched(self, configs, cells, trials, device, stopped):
        used.add(device.id)
        return inner(self, configs, cells, trials, device, stopped)
    lanes.Lanes.run = watched
    study(store=sys.argv[1])
    assert len(sys.argv) == 2 or used == set(range(int(sys.argv[2]))), used
    """)


def start(path, *devices):
    flags = f"--xla_force_host_platform_device_count={[1, *devices][-1]}"
    env = os.environ | dict(XLA_FLAGS=f"{os.environ.get('XLA_FLAGS', '')} {flags}")
    command = [sys.executable, "-c", RUN, str(path), *map(str, devices)]
    return subprocess.Popen(command, env=env)


@pytest.mark.parametrize("devices", sparing([4, 2, 1]))
def test_all_devices_are_used_and_the_bits_are_those_of_one(devices, plain, tmp_path):
    assert start(tmp_path / "s.zarr", devices).wait() == 0
    assert ino.open_sweep(tmp_path / "s.zarr").identical(plain)


@pytest.mark.slow
def test_a_unit_is_halved_until_it_fits_the_memory(plain, tmp_path, monkeypatch):
    """And refused if a tile does not, with nothing written; the bits stay the same."""
    monkeypatch.setattr(lanes.Lanes, "is_small", lambda *_: False)
    made, memory = [], lanes.Lanes.memory

    def measured(self, configs):
        made.append((self.tiles, memory(self, configs)))
        return made[-1][1]

    monkeypatch.setattr(lanes.Lanes, "memory", measured)
    monkeypatch.setattr(run, "_room", lambda workers: 2.0**40)
    study()
    ((tiles, needs),) = made
    assert needs > 2 * tiles * 32 * 3 * 4  # the states and what is observed of them
    monkeypatch.setattr(run, "_room", lambda workers: needs - 1.0)
    assert study().identical(plain)
    assert [t for t, _ in made[1:]] == [tiles, tiles // 2]
    assert made[-1][1] < needs
    monkeypatch.setattr(run, "_room", lambda workers: 1.0)
    with pytest.raises(ValueError, match="GiB for one tile of 32 lanes, and there are 0"):
        study(store=tmp_path / "s.zarr")
    assert not list(tmp_path.iterdir())


def test_two_workers_of_which_one_is_killed_complete_it(plain, tmp_path):
    path = tmp_path / "s.zarr"
    workers = [start(path), start(path)]
    while not path.exists():
        time.sleep(0.01)
    time.sleep(1.0)
    workers[0].send_signal(signal.SIGKILL)
    assert [w.wait() for w in workers][1] == 0
    assert ino.open_sweep(path).identical(plain)


def test_a_store_of_another_sweep_is_refused_with_what_differs(tmp_path):
    path = tmp_path / "s.zarr"
    study(store=path)
    before = sorted(p.stat().st_mtime_ns for p in path.rglob("*"))
    for changed, message in (
        (dict(trials=7), r"\(trials: 16 there, 7 here\)"),
        (dict(key=jr.key(4)), r"\(key: \[0, 3\] there, \[0, 4\] here\)"),
        (dict(grid={"rule.tau": [0.2]}), "grid.model.omega: .* there, nothing here"),
        (dict(grid=dict(reversed(GRID.items()))), "axes: "),
        (dict(config=config(p=70, ts=STUDY["ts"])), r"\(config.model.p: 60 there, 70 here"),
        (
            dict(config=config(ino.Oja(0.5), **STUDY)),
            "config.rule: InoPCA there, Oja here",
        ),
        (dict(observables=("mean",)), "fields: "),
    ):
        call = dict(config=config(**STUDY), grid=GRID, trials=TRIALS, key=KEY) | changed
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
        (dict(grid={"ts": [[0.0, 1.0]]}), "at the config's times"),
        (dict(grid={"rule.tau": [0.1], ("rule.tau", "start.lam0"): [(1.0, 1.0)]}), "twice"),
        (dict(grid={("rule.tau", "start.lam0"): [(1.0,)]}), "one value for each"),
        (dict(trials=0), "trials = 0"),
        (dict(observables=("median",)), "'median'"),
        (dict(observables=()), "empty"),
        (dict(theory="all"), "theory = 'all'"),
    ],
)
def test_bad_sweeps_are_refused_before_anything_is_written(call, message, tmp_path):
    whole = dict(config=config(**STUDY), grid=GRID, trials=TRIALS, key=KEY) | call
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


def test_no_cell_compiles_again():
    small = dict(trials=3, key=KEY)
    ino.sweep(config(p=50, ts=(0.0, 0.5)), {"rule.tau": [0.1, 0.2]}, **small)
    before = lanes._advance._cached._cache_size()
    grid = {"rule.tau": list(jnp.linspace(0.1, 1, 40)), "model.omega": [0.5, 2.0]}
    ino.sweep(config(p=50, ts=(0.0, 0.5)), grid, **small)
    assert lanes._advance._cached._cache_size() == before
