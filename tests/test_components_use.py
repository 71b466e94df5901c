"""Several components in sweeps, in figures and on the command line."""

import csv
import dataclasses
import shlex

import jax.numpy as jnp
import jax.random as jr
import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr

import inopca_jax as ino
from inopca_jax import plot
from inopca_jax._cli.main import main
from inopca_jax._sweep.store import Store

from .cases import arrays_in

STUDY = ino.Config(
    model=ino.SpikedModel(p=60, omega=[1.0, 4.0, 2.0]),
    start=ino.WarmStart(q0=0.3),
    ts=[0.0, 0.5, 1.0],
    components=2,
)
GRID = {"rule.tau": [0.2, 0.5], "model.omega": [[1.0, 4.0, 2.0], [3.0, 2.0, 1.0]]}
OPTIONS = dict(trials=3, key=jr.key(0), observables=("mean", "std", "trials"), theory=True)
DERIVED = ("grassmann_distance", "captured_share")


@pytest.fixture(scope="module")
def dataset():
    return ino.sweep(STUDY, GRID, **OPTIONS)


def cell_of(dataset, i, j):
    """A cell, without what a `ComponentTrajectory` does not have."""
    cell = dataset.isel({"rule.tau": i, "model.omega": j})
    cell = cell.drop_vars(["rule.tau", "model.omega", "done"])
    own = [n for n in cell if n.startswith(("abs_", *DERIVED))]
    return cell.drop_vars(own)


def test_a_sweep_has_the_names_and_coordinates_of_a_component_trajectory(dataset):
    run = ino.simulate(STUDY, key=jr.key(0), trials=3)
    parts = [run.to_xarray(), run.mean().to_xarray("mean"), run.std().to_xarray("std")]
    parts = [*parts, ino.mean_field(STUDY).to_xarray()]
    expected = xr.merge(parts, compat="no_conflicts")
    cell = cell_of(dataset, 1, 0)
    assert set(cell.variables) == set(expected.variables)
    for name, array in expected.variables.items():
        assert cell[name].dims == array.dims, name
    for name in expected.coords:
        assert np.array_equal(cell[name], expected[name])
    for name in ("overlaps", "norms", "cosines"):
        theory = f"{name}_theory"
        assert np.allclose(cell[theory], expected[theory], atol=1e-4)


@pytest.mark.slow
def test_a_cell_has_the_statistics_of_its_trials(dataset):
    for i, j in ((0, 1), (1, 0)):
        cell = dataset.isel({"rule.tau": i, "model.omega": j})
        names = ("overlaps", "norms", "cosines")
        fields = {name: np.asarray(cell[f"{name}_trials"]) for name in names}
        omega = np.asarray(cell["omega"])
        assert np.array_equal(omega, np.tile(GRID["model.omega"][j], (3, 1)))
        given = {name: jnp.asarray(a) for name, a in (fields | dict(omega=omega)).items()}
        runs = ino.ComponentTrajectory(np.asarray(STUDY.ts), **given)
        expected = fields | dict(abs_overlaps=np.abs(fields["overlaps"]))
        expected |= {name: np.asarray(getattr(runs, name)()) for name in DERIVED}
        for name, values in expected.items():
            # Angles are as exact as the root of the precision of cosines.
            assert np.allclose(cell[f"{name}_mean"], values.mean(0), atol=2e-3), name
            assert np.allclose(cell[f"{name}_std"], values.std(0, ddof=1), atol=2e-3), name
        # The overlap of the first component with the strongest spike is what it starts at.
        strongest = int(np.argmax(GRID["model.omega"][j]))
        start = fields["overlaps"][:, 0, strongest, 0]
        assert np.all(np.abs(start - 0.3) < 5 / np.sqrt(60))
        assert cell["finite"] == 3


def test_cells_differ_by_their_numbers_and_agree_with_simulate(dataset):
    """In law: a cell has random numbers of its own."""
    distance = dataset["grassmann_distance_theory"].isel(time=-1)
    for i, tau in enumerate(GRID["rule.tau"]):
        for j, omega in enumerate(GRID["model.omega"]):
            model = ino.SpikedModel(p=60, omega=omega)
            config = dataclasses.replace(STUDY, rule=ino.InoPCA(tau), model=model)
            expected = ino.mean_field(config).grassmann_distance()[-1]
            assert np.isclose(distance[i, j], expected, atol=1e-3)
    assert len(np.unique(np.round(np.ravel(distance), 5))) == 4


@pytest.mark.slow
def test_a_store_of_components_continues_and_detects_damage(dataset, tmp_path):
    path = tmp_path / "s.zarr"
    full = ino.sweep(STUDY, GRID, store=path, **OPTIONS)
    xr.testing.assert_equal(full, dataset)
    store = Store(path)
    store.invalidate(0)
    assert not ino.open_sweep(path).done.all()
    xr.testing.assert_equal(ino.sweep(STUDY, GRID, store=path, **OPTIONS), dataset)
    chunk = store.chunk_path("results", 0)
    content = bytearray(chunk.read_bytes())
    content[len(content) // 2] ^= 1
    chunk.write_bytes(bytes(content))
    assert list(store.damaged()) == [0]
    other = dataclasses.replace(STUDY, components=1)
    with pytest.raises(ValueError, match=r"another sweep \(config.components: 2 in the"):
        ino.sweep(other, GRID, store=path, **OPTIONS)


class Saturating(ino.AbstractRule):
    """A rule whose gain reads the sample's component along the estimate."""

    tau: ino.AbstractSchedule
    projects = True

    def rates(self, observables, tau):
        gain = tau / (1 + observables.s2)
        return ino.Rates(gain=gain, decay=0 * gain)


@pytest.mark.parametrize(
    ("config", "grid", "options", "message"),
    [
        (STUDY, {"components": [1, 2]}, {}, "3 and 1, 3 and 2.*sweep of each"),
        (STUDY, {"model.omega": [1.0, [1.0, 2.0]]}, {}, "1 and 2, 2 and 2.*omega = 0"),
        (STUDY, {"rule.tau": [0.5]}, dict(theory="bars"), "3 spikes.*theory='bars'"),
        (
            dataclasses.replace(STUDY, rule=Saturating(ino.Constant(0.5))),
            {"model.p": [60, 80]},
            dict(theory=True),
            "rule = Saturating.*Chain",
        ),
        (STUDY, {"model.omega": [[1.0, -1.0, 2.0]]}, {}, r"omega = \[1.0, -1.0, 2.0\]"),
    ],
)
def test_a_sweep_that_cannot_be_is_refused_before_it_begins(config, grid, options, message):
    with pytest.raises(ValueError, match=message):
        ino.sweep(config, grid, key=jr.key(0), trials=10**9, **options)


def test_a_sweep_is_drawn_over_its_own_axes(dataset):
    one_omega = dataset.isel({"model.omega": 0})
    (ax,) = plot.sweep(one_omega).axes
    assert ax.get_xlabel() == "rule.tau"
    assert ax.get_ylabel() == "grassmann_distance_mean at the last time"
    (line,) = ax.lines
    expected = one_omega["grassmann_distance_mean"].isel(time=-1)
    assert np.array_equal(line.get_ydata(), expected)
    (ax,) = plot.sweep(one_omega, "overlaps_mean").axes
    assert len(ax.lines) == 6
    plt.close("all")


TS = np.linspace(0, 2, 5)


@pytest.fixture(scope="module")
def curves():
    random = np.random.default_rng(0)

    def path(trials):
        overlaps = random.uniform(-0.5, 0.5, (*trials, 5, 2, 3))
        norms = random.uniform(1, 2, (*trials, 5, 3))
        cosines = np.broadcast_to(np.eye(3), (*trials, 5, 3, 3))
        omega = np.tile([1.0, 3.0], (5, 1))
        arrays = map(jnp.asarray, (overlaps, norms, cosines, omega))
        return ino.ComponentTrajectory(TS, *arrays)

    return plot.Curve("a", path(()), path((4,)), path((2,)))


def test_components_are_drawn_in_a_colour_each_from_the_numbers(curves):
    quantities = ["q", "lam", "distance"]
    figure = plot.learning_curves([curves], quantities=quantities, omega=[1.0, 3.0])
    overlap, norm, distance = figure.axes
    # The strongest spike is the second.
    order, theory, runs = [1, 0], curves.theory, curves.runs
    solid = [line for line in overlap.lines if line.get_linestyle() == "-"]
    drawn = [line for line in solid if len(line.get_xdata()) == 5]
    for i, line in enumerate(drawn):
        assert np.allclose(line.get_ydata(), theory.overlaps[:, order[i], i], atol=1e-6)
        assert line.get_color() == plot.COLOURS[i]
    assert len(drawn) == 2
    bars = [bar for bar in norm.containers if len(bar.lines[0].get_xdata())]
    for i, bar in enumerate(bars):
        assert np.allclose(bar.lines[0].get_ydata(), runs.norms.mean(0)[:, i], atol=1e-6)
        segments = bar.lines[2][0].get_segments()
        expected = 2 * runs.norms.std(0, ddof=1)[:, i]
        assert np.allclose([np.ptp(s[:, 1]) for s in segments], expected, atol=1e-5)
    assert len(bars) == 3
    labels = [text.get_text() for text in norm.get_legend().get_texts()]
    components = [f"component {i}" for i in (1, 2, 3)]
    assert sorted(labels) == sorted(
        [*components, "a, theory", "a, 4 trials $\\pm$ sd", "a, p-dimensional, 2 trials"]
    )
    lines = {line.get_label(): line.get_ydata() for line in distance.lines}
    assert np.allclose(lines["a, theory"], theory.grassmann_distance(), atol=1e-5)
    found = np.array([ino.offline_overlap(omega, 2.0) for omega in (3.0, 1.0)])
    offline = np.sqrt(np.sum(np.arccos(found) ** 2))
    assert np.isclose(lines["offline PCA, limit"][-1], offline, rtol=1e-5)
    dashed = [line for line in overlap.lines if line.get_color() == "0.55"]
    assert np.allclose([line.get_ydata()[-1] for line in dashed], found, rtol=1e-5)
    plt.close("all")


def test_components_are_drawn_on_given_axes(curves):
    _, axes = plt.subplots(1, 2)
    others = plt.get_fignums()
    assert plot.learning_curves([curves], ax=axes) is axes
    assert all(ax.has_data() for ax in axes)
    ax = axes[0]
    assert plot.draw(ax, curves, "distance") is ax
    assert plt.get_fignums() == others
    plt.close("all")


def test_curves_that_do_not_fit_together_are_refused(curves):
    single = plot.Curve("b", ino.Trajectory(TS, *[jnp.asarray(TS)] * 2))
    bad = {
        "of one component and of several": lambda: plot.learning_curves([curves, single]),
        "a.*distance": lambda: plot.draw(plt.gca(), single, "distance"),
        r"omega = \[1.0\]": lambda: plot.learning_curves([curves], omega=[1.0]),
        r"omega = \[1.0, -1.0\]": lambda: plot.learning_curves([curves], omega=[1.0, -1.0]),
        r"theory with norms of shape \(4, 5, 3\)": lambda: plot.learning_curves(
            [plot.Curve("c", theory=curves.runs)]
        ),
        "different numbers of spikes": lambda: plot.learning_curves(
            [
                plot.Curve(
                    "d", curves.theory, ino.Trajectory(TS, *[jnp.asarray(TS)[None]] * 2)
                )
            ]
        ),
    }
    for message, call in bad.items():
        with pytest.raises(ValueError, match=message):
            call()
    plt.close("all")


FLAGS = "--components 2 --omega 1 4 2 --p 200 --t-max 1 --points 3 --trials 3 --q0 0.3"


@pytest.mark.slow
def test_the_command_simulates_components(tmp_path, capsys):
    out, table, drawn = (tmp_path / f"a.{end}" for end in ("npz", "csv", "png"))
    more = f"--reference 2 --reference-until 0.5 --out {out} --plot {drawn}"
    assert main(["simulate", *shlex.split(f"{FLAGS} {more}")]) == 0
    printed = capsys.readouterr().out
    assert "INO-PCA, p = 200, 3 spikes, 2 components, 3 trials\n" in printed
    arrays = arrays_in(out)
    assert arrays["overlaps"].shape == (3, 3, 3, 2)
    assert arrays["reference_norms"].shape == (2, 2, 2)
    model, start = ino.SpikedModel(p=200, omega=[1.0, 4.0, 2.0]), ino.WarmStart(0.3)
    ts = np.array([0.0, 0.5, 1.0])
    ode = ino.mean_field(ino.Config(model=model, start=start, ts=ts, components=2))
    assert np.allclose(arrays["theory_overlaps"], ode.overlaps, atol=1e-4)
    assert np.allclose(arrays["theory_grassmann_distance"], ode.grassmann_distance())
    assert drawn.read_bytes()[:4] == b"\x89PNG"
    assert main(["simulate", *shlex.split(f"{FLAGS} --out {table}")]) == 0
    with open(table) as file:
        rows = list(csv.DictReader(file))
    distances = np.asarray(arrays["grassmann_distance"], float)
    found = [float(row["distance_mean"]) for row in rows]
    assert np.allclose(found, distances.mean(axis=0), atol=1e-6)
    norms = [float(row["lam_2_sd"]) for row in rows]
    assert np.allclose(norms, arrays["norms"][..., 1].std(0, ddof=1), atol=1e-6)


def test_the_command_prints_the_limits_of_every_component(capsys):
    assert main(["limits", "--components", "3", "--omega", "2", "4", "--q0", "0.2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    rows = {line.split("  ")[0]: line.split()[-3:] for line in lines[1:-1]}
    assert rows["signal-to-noise ratio"] == ["4.000000", "2.000000", "0.000000"]
    for i, omega in enumerate((4.0, 2.0)):
        alone = ino.Config(model=ino.SpikedModel(omega=omega))
        q, lam = ino.steady_state(alone)
        assert np.isclose(float(rows["steady overlap"][i]), q, atol=1e-6)
        assert np.isclose(float(rows["steady norm"][i]), lam, atol=1e-6)
        offline = float(lines[-2].split()[-2:][i])
        assert np.isclose(offline, ino.offline_overlap(omega, 50.0), atol=1e-6)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("simulate --components 2 --bands", "--bands is not allowed with several"),
        ("simulate --components 0", "--components 0"),
        ("simulate --components 9 --p 10 --omega 1 2", "--components 9"),
        ("simulate --omega 1 -1", r"--omega [1.0, -1.0]"),
        ("simulate --omega 1 nan", r"--omega [1.0, nan]"),
        ("simulate --start box --components 2", "--start Box"),
        ("density --components 2", "--components 2 is not allowed with density"),
    ],
)
def test_a_command_that_components_cannot_have_is_one_line(flags, message, capsys):
    assert main(shlex.split(flags)) == 2
    output = capsys.readouterr()
    assert message in output.err
    assert (output.out, len(output.err.splitlines())) == ("", 1)


def test_a_spec_may_have_several_spikes(tmp_path):
    from inopca_jax._cli.spec import read_spec

    path = tmp_path / "s.toml"
    path.write_text(
        "[config]\ncomponents = 2\nomega = [4, 2, 1]\np = 60\n"
        "[grid]\n'rule.tau' = [0.2, 0.5]\n"
    )
    config = read_spec(path).config
    assert config.components == 2
    assert np.asarray(config.model.omega).tolist() == [4, 2, 1]
    path.write_text("[config]\nomega = 3\n[grid]\n'rule.tau' = [0.2]\n")
    assert float(read_spec(path).config.model.omega) == 3
