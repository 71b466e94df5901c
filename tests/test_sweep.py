"""Sweeps: the same bits however they are run, and nothing lost."""

import dataclasses
import os
import subprocess
import sys
import textwrap
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import inopca_jax as ino
from inopca_jax._batch import batch, memory
from inopca_jax._sweep import run
from inopca_jax._sweep.dataset import short_labels
from inopca_jax._sweep.grid import Grid
from inopca_jax._sweep.store import Store

from .cases import config

GRID = {"rule.tau": [0.2, 0.5, 0.8], "model.omega": [0.5, 1.0, 2.0, 3.0]}
STUDY = dict(p=60, ts=(0.0, 1.0, 2.0))
CELLS, UNIT = 12, 2  # a unit has as many cells as fit into 8 tiles of 32 lanes
TRIALS = 100


def key():
    # Not when the module is imported: JAX would begin to compute, after which a process
    # can neither be forked nor connected with others.
    return jr.key(3)


def study(**more):
    return ino.sweep(config(**STUDY), GRID, trials=TRIALS, key=key(), **more)


@pytest.fixture(scope="module")
def plain():
    return study()


def test_a_cell_is_what_simulate_makes_of_its_config(plain):
    """With the cell's number folded into the key; up to the rounding of another program."""
    for i, j in ((0, 0), (1, 2), (2, 3)):
        tau, omega = GRID["rule.tau"][i], GRID["model.omega"][j]
        one = config(ino.InoPCA(tau), omega=omega, **STUDY)
        runs = ino.simulate(one, key=jr.fold_in(key(), 4 * i + j), trials=TRIALS)
        cell = plain.isel({"rule.tau": i, "model.omega": j})
        assert np.allclose(cell.q_mean, runs.mean().q, atol=1e-5)
        assert np.allclose(cell.lam_std, runs.std().lam, atol=1e-5)
        assert np.allclose(cell.abs_q_mean, runs.abs().mean().q, atol=1e-5)


def test_a_grid_takes_static_numbers_and_names_that_vary_together():
    grid = {"model.p": [40, 60], ("rule.tau", "start.lam0"): [(0.2, 1.0), (0.4, 2.0)]}
    found = ino.sweep(
        config(**STUDY), grid, trials=4, key=key(), observables=("trials",), theory=True
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
    found = ino.sweep(config(**STUDY), grid, trials=4, key=key())
    assert np.allclose(found.lam_mean[:, :, 0], [[1, 2], [1, 1]], rtol=1e-5)
    assert list(found["rule"].values) == ["InoPCA", "Oja"]
    assert np.all(found.sel(rule="Oja").lam_mean == found.lam_mean[1])


LABELS = {
    "one of each class": (lambda: [ino.InoPCA(0.5), ino.Oja()], ["InoPCA", "Oja"]),
    "several of a class": (
        lambda: [ino.InoPCA(0.5), ino.Oja(), ino.InoPCA(1.0)],
        ["InoPCA(tau=0.5)", "Oja", "InoPCA(tau=1.0)"],
    ),
    "parts of parts": (
        lambda: [ino.InoPCA(ino.Harmonic(2.0)), ino.InoPCA(ino.Oracle())],
        ["InoPCA(tau=Harmonic(c=2.0, t0=1.0, k0=0.0))", "InoPCA(tau=Oracle())"],
    ),
    "some arguments": (
        lambda: [ino.Cubic(0.5, 4.0), ino.Cubic(0.5, 3.0)],
        ["Cubic(degree=4.0)", "Cubic(degree=3.0)"],
    ),
}


@pytest.mark.parametrize("name", LABELS)
def test_labels_are_short_and_tell_the_values_of_an_axis_apart(name):
    make, labels = LABELS[name]
    made = Grid(config(**STUDY), {"rule": make()})
    texts = [text for (text,) in made.labels(made.axes[0])]
    assert short_labels(texts) == labels
    assert len(set(texts)) == len(texts)  # the store has all of their numbers


def test_labels_of_any_form_are_shown():
    """As a store may have them that was written by another version."""
    odd = ["a b", "InoPCA(", "5", "(1)", 0.5, "InoPCA(tau=<rule.tau>)"]
    assert short_labels(odd) == [*odd[:-1], "InoPCA"]


class Sometimes(ino.AbstractRule):
    """INO-PCA with a number more."""

    tau: ino.AbstractSchedule
    sometimes: jax.Array = eqx.field(converter=jnp.asarray)
    projects: ClassVar[bool] = False

    def rates(self, observables, tau):
        return ino.Rates(gain=self.sometimes * tau / observables.lam, decay=tau)


def test_what_the_host_reads_is_compiled_in_and_nothing_else_is():
    """The host reads the times of a change of the spike, also those of a whole model."""
    one = config(Sometimes(ino.Constant(0.5), 1.0), **STUDY)
    assert len(Grid(one, {"rule.sometimes": [1.0, 2.0]}).groups) == 1
    two = lambda t: ino.Switching([ino.SpikedModel(60), ino.SpikedModel(60)], [t])
    switching = dataclasses.replace(one, model=two(0.5))
    assert len(Grid(switching, {"model.times": [[0.5], [1.0]]}).groups) == 2
    assert len(Grid(switching, {"model": [two(0.5), two(1.0)]}).groups) == 2


@pytest.mark.slow
def test_quantiles_and_bars_are_what_they_say():
    found = ino.sweep(
        config(**STUDY),
        {"rule.tau": [0.2, 0.5]},
        trials=50,
        key=key(),
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
        key=key(),
    )
    assert found.finite[0] == 8
    assert found.finite[1] < 8
    assert bool(found.done.all())
    assert np.all(np.isfinite(found.q_mean[0]))


@pytest.mark.smoke
def test_a_store_has_the_bits_of_a_sweep_without_one(plain, tmp_path):
    path = tmp_path / "s.zarr"
    assert study(store=path).identical(plain)
    assert ino.open_sweep(path).identical(plain)
    assert study(store=path, fsync=False).identical(plain)  # nothing is left to do


RUN = textwrap.dedent("""
    import sys
    from inopca_jax._batch.batch import Batch
    from tests.test_sweep import study
    used, inner = set(), Batch.run
    def watched(self, configs, key, numbers, device, *calls):
        used.add(device.id)
        return inner(self, configs, key, numbers, device, *calls)
    Batch.run = watched
    study(store=sys.argv[1], theory=True)
    assert used == set(range(int(sys.argv[2]))), used
    """)


def start(path, devices):
    """A sweep in a process with so many devices."""
    flags = f"--xla_force_host_platform_device_count={devices}"
    command = [sys.executable, "-c", RUN, str(path), str(devices)]
    return subprocess.Popen(command, env=os.environ | dict(XLA_FLAGS=flags))


@pytest.mark.slow
def test_all_devices_are_used_and_the_bits_are_those_of_one(tmp_path):
    """Also if another number of them does what is left of it."""
    paths = [tmp_path / f"{i}.zarr" for i in (1, 4)]
    both = [start(path, int(path.stem)) for path in paths]
    assert [process.wait() for process in both] == [0, 0]
    one, four = map(ino.open_sweep, paths)
    assert four.identical(one)
    for unit in (0, 2, 5):
        Store(paths[1]).invalidate(unit)
    assert start(paths[1], 2).wait() == 0
    assert ino.open_sweep(paths[1]).identical(one)


def test_a_sweep_may_observe_the_start_alone():
    found = ino.sweep(config(ts=[0.0]), {"model.omega": [1.0, 2.0]}, trials=2, key=key())
    assert np.array_equal(found.finite, [2, 2])


def test_the_theory_does_not_depend_on_the_number_of_trials():
    """Which decides how many cells a unit has."""
    few, many = (
        ino.sweep(config(**STUDY), GRID, trials=trials, key=key(), theory=True)
        for trials in (3, 100)
    )
    assert np.array_equal(few.q_theory, many.q_theory)
    assert np.array_equal(few.lam_theory, many.lam_theory)


def test_the_shape_of_a_program_follows_from_the_config_and_is_in_the_store(tmp_path):
    study(store=tmp_path / "s.zarr", theory=True)
    shape = dict(tile=[32], tiles=[8], theory=16)
    assert Store(tmp_path / "s.zarr").manifest["shape"] == shape
    for engine, tiles in ((ino.Chain(), 8), (ino.Stream(), 1)):
        assert run._batch(engine, config(p=3_000_000)).tiles == tiles


@pytest.mark.slow
def test_a_program_that_does_not_fit_the_memory_is_refused(plain, tmp_path, monkeypatch):
    """With nothing written; one that just fits has the bits of any."""
    monkeypatch.setattr(memory, "is_small", lambda *_: False)
    chain = run._batch(ino.Chain(), config(**STUDY))
    needs = chain.call_bytes() + 2 * chain.lanes * chain.times * 4
    assert needs > 2 * 256 * 3 * 4  # the states and what is observed of them
    monkeypatch.setattr(run, "room_for_calls", lambda workers: float(needs))
    assert study().identical(plain)
    monkeypatch.setattr(run, "room_for_calls", lambda workers: needs - 1.0)
    with pytest.raises(ValueError, match="GiB of memory for 256 lanes, and 0"):
        study(store=tmp_path / "s.zarr")
    monkeypatch.undo()
    monkeypatch.setattr(run, "host_room", lambda: 12 * 8 * 3 * 7 - 1.0)
    with pytest.raises(ValueError, match=r"The results of 12 cells take .* fewer obs"):
        study(store=tmp_path / "s.zarr")
    assert not list(tmp_path.iterdir())


def test_a_store_of_another_sweep_is_refused_with_what_differs(tmp_path):
    path = tmp_path / "s.zarr"
    study(store=path)
    before = sorted(p.stat().st_mtime_ns for p in path.rglob("*"))
    for changed, message in (
        (dict(trials=7), r"\(trials: 100 in the store, 7 in this sweep; unit_cells: 2 in"),
        (dict(key=jr.key(4)), r"\(key: \[0, 3\] in the store, \[0, 4\] in this sweep\)"),
        (dict(grid={"rule.tau": [0.2]}), "grid.model.omega: .* in the store, nothing in"),
        (dict(grid=dict(reversed(GRID.items()))), "axes: "),
        (
            dict(config=config(p=70, ts=STUDY["ts"])),
            r"\(config.model.p: 60.0 in .*, 70.0 in",
        ),
        (
            dict(config=config(ino.Oja(0.5), **STUDY)),
            "config.rule: InoPCA in the store, Oja in this sweep",
        ),
        (dict(observables=("mean",)), "fields: "),
    ):
        call = dict(config=config(**STUDY), grid=GRID, trials=TRIALS, key=key()) | changed
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
        (dict(grid={"rule.tau": [0.1], "rule.tau.value": [0.5]}), "the same number"),
        (dict(grid={"model.omega": range(2000), "start.q0": range(10**9)}), "1e.09 cells"),
        (dict(trials=0), "trials = 0"),
        (dict(observables=("median",)), "'median'"),
        (dict(observables=()), r"observables = \(\) is not allowed: name some of mean"),
        (dict(theory="all"), "theory = 'all'"),
    ],
)
def test_bad_sweeps_are_refused_before_anything_is_written(call, message, tmp_path):
    whole = dict(config=config(**STUDY), grid=GRID, trials=TRIALS, key=key()) | call
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
    small = dict(trials=3, key=key())
    ino.sweep(config(p=50, ts=(0.0, 0.5)), {"rule.tau": [0.1, 0.2]}, **small)
    before = batch._advance._cached._cache_size()
    grid = {"rule.tau": list(jnp.linspace(0.1, 1, 40)), "model.omega": [0.5, 2.0]}
    ino.sweep(config(p=50, ts=(0.0, 0.5)), grid, **small)
    assert batch._advance._cached._cache_size() == before


PARTS = {
    "rule": [ino.InoPCA, ino.Oja],
    "model": [lambda: ino.SpikedModel(40), lambda: ino.SpikedModel(60, spike=ino.Sparse())],
    "start": [lambda: ino.WarmStart(0.2), lambda: ino.Box(0.2, 2.0)],
}
NUMBERS = {
    "rule.tau": ("rule", [0.2, 0.5, 1.0]),
    "model.omega": ("model", [0.5, 2.0, 3.0]),
    "start.q0": ("start", [0.1, 0.2, 0.3]),
}


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("order", ["part first", "number first", "zipped"])
def test_a_number_inside_a_part_of_another_axis_is_what_the_cells_run_with(number, order):
    """In whatever order the axes are, and with labels that do not say otherwise."""
    part, values = NUMBERS[number]
    parts = [make() for make in PARTS[part]]
    grid = {part: parts, number: values}
    if order == "number first":
        grid = {number: values, part: parts}
    if order == "zipped":
        grid = {(number, part): list(zip(values[:2], parts, strict=True))}
    made = Grid(config(**STUDY), grid)
    leaf = {"rule.tau": lambda c: c.rule.tau.value, "model.omega": lambda c: c.model.omega}
    at = leaf.get(number, lambda c: c.start.q0)
    seen = {}
    for group in made.groups:
        for row, cell in enumerate(group.cells):
            one = group.config_of(row)
            seen[int(cell)] = (type(getattr(one, part)), float(at(one)))
    where = [np.unravel_index(cell, made.shape) for cell in range(made.size)]
    labels = [
        {
            n: v
            for a, i in zip(made.axes, w, strict=True)
            for n, v in zip(a.names, a.values[i], strict=True)
        }
        for w in where
    ]
    for cell, label in enumerate(labels):
        assert seen[cell] == (type(label[part]), pytest.approx(label[number]))
    (axis,) = [axis for axis in made.axes if part in axis.names]
    texts = [row[axis.names.index(part)] for row in made.labels(axis)]
    assert all(f"<{number}>" in text for text in texts)


def test_a_part_keeps_its_other_numbers_beside_one_that_another_axis_sets():
    grid = {"start.q0": [0.1, 0.3], "start": [ino.WarmStart(0.2), ino.WarmStart(0.2, 2.0)]}
    found = ino.sweep(config(**STUDY), grid, trials=4, key=key())
    assert np.allclose(found.lam_mean[:, :, 0], [[1, 2], [1, 2]], rtol=1e-5)
    assert np.allclose(found.q_mean[:, :, 0], [[0.1, 0.1], [0.3, 0.3]], atol=0.1)


# Made when they are used: see `key`.
UNTRUE = {
    r"rule.tau with rule = InoPCA\(tau=Harmonic\(.* is not a number": lambda: {
        "rule": [ino.Oja(), ino.CCIPCA()],
        "rule.tau": [0.1],
    },
    r"rule.tau with rule = InoPCA\(tau=Oracle\(\)\) is not a number": lambda: {
        "rule.tau": [0.1],
        "rule": [ino.AdaptiveInoPCA()],
    },
    r"grid names 'start.q0', which does not exist with start = ColdStart\(": lambda: {
        "start.q0": [0.1],
        "start": [ino.WarmStart(), ino.ColdStart()],
    },
    "differ in rule.tau only": lambda: {
        "rule": [ino.InoPCA(0.1), ino.InoPCA(0.2)],
        "rule.tau": [0.5, 1],
    },
}


@pytest.mark.parametrize("message", UNTRUE)
def test_a_grid_whose_labels_would_not_be_true_is_refused(message):
    with pytest.raises(ValueError, match=message):
        Grid(config(**STUDY), UNTRUE[message]())


def test_a_sweep_over_p_compiles_one_program_and_its_cells_are_those_of_simulate():
    """Also with theory. The law of a cell is that of `simulate`, and p is in its label."""
    ps = [40, 90, 200, 450]
    small = dict(trials=400, key=key(), theory="bars")
    study = config(start=ino.WarmStart(0.5), ts=np.array([0.5, 2.0]))
    ino.sweep(study, {"model.p": [30, 60]}, **small)
    before = batch._advance._cached._cache_size()
    swept = ino.sweep(study, {"model.p": ps}, **small)
    assert batch._advance._cached._cache_size() == before
    for i, p in enumerate(ps):
        assert swept["model.p"][i] == p
        runs = ino.simulate(
            config(start=ino.WarmStart(0.5), p=p, ts=study.ts), key=jr.key(9), trials=400
        )
        error = np.sqrt(2 / 400) * runs.std().q
        assert np.all(np.abs(swept.q_mean[i] - runs.mean().q) < 5 * error)
    # Predicted deviations go as 1/sqrt(p).
    scaled = swept.q_std_theory * np.sqrt(np.asarray(ps))[:, None]
    assert np.allclose(scaled, scaled[:1], rtol=1e-3)
