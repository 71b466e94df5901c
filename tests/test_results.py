"""Results are saved, loaded and tabulated without a change, by the names of a sweep."""

import json
import sys

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from hypothesis import given, strategies as st

import inopca_jax as ino

from .cases import budgets, config
from .test_pickling import (
    assert_same_bits,
    bars,
    density,
    escape_time,
    histogram,
    overlap_law,
    random_arrays,
    seeds,
    trajectory,
)


def path_of_theory(seed):
    return ino.Trajectory(np.arange(3) / 3, *random_arrays(seed, (3,), (3,)))


def rescaled_density(seed):
    (x,) = random_arrays(seed, (3, 4))
    return eqx.tree_at(lambda pdf: pdf.x, density(seed), x)


def rescaled_histogram(seed):
    return ino.empirical_density(trajectory(seed), bins=3, groups=2, rescaled=True)


def components(seed):
    """Two components among three spikes, at four times."""
    shapes = (4, 3, 2), (4, 2), (4, 2, 2), (4, 3)
    return ino.ComponentTrajectory(np.arange(4) / 3, *random_arrays(seed, *shapes))


RESULTS = (
    bars, components, density, escape_time, histogram, overlap_law, path_of_theory,
    rescaled_density, rescaled_histogram, trajectory,
)  # fmt: skip
ALL = pytest.mark.parametrize("make", RESULTS, ids=lambda make: make.__name__)


@budgets(60, long=500)
@given(st.sampled_from(RESULTS), seeds, st.booleans(), st.booleans())
def test_what_is_saved_is_loaded_to_the_bit(folder, make, seed, wide, wide_when_loaded):
    with jax.enable_x64(wide):
        before = make(seed)
        before.save(folder / "a.npz")
    with jax.enable_x64(wide_when_loaded):
        after = type(before).load(folder / "a.npz")
    assert type(after) is type(before)
    assert_same_bits(before, after)


def test_the_load_of_another_type_names_the_one_that_was_saved(tmp_path):
    bars(0).save(tmp_path / "a.npz")
    with pytest.raises(ValueError, match=r"has a Prediction .* call Prediction\.load"):
        ino.Trajectory.load(tmp_path / "a.npz")


@ALL
def test_a_file_that_is_cut_anywhere_is_refused(make, tmp_path):
    result, whole, cut = make(0), tmp_path / "a.npz", tmp_path / "b.npz"
    result.save(whole)
    content = whole.read_bytes()
    for length in [0, 1, *range(10, len(content), 97), len(content) - 1]:
        cut.write_bytes(content[:length])
        with pytest.raises(ValueError, match=r"b\.npz is damaged.* pass a file that save"):
            type(result).load(cut)


def test_a_changed_number_is_noticed(tmp_path):
    result, path = path_of_theory(0), tmp_path / "a.npz"
    result.save(path)
    content = path.read_bytes()
    at = content.index(np.asarray(result.lam).tobytes())
    path.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
    with pytest.raises(ValueError, match="damaged"):
        ino.Trajectory.load(path)


def test_files_of_others_are_refused(tmp_path):
    path, header = tmp_path / "a.npz", dict(type="Trajectory", format=1, jax=[])
    ts = np.arange(3.0)

    def refused(message, **arrays):
        np.savez(path, **arrays)
        with pytest.raises(ValueError, match=message):
            ino.Trajectory.load(path)

    with pytest.raises(ValueError, match="is not a file"):
        ino.Trajectory.load(path)
    refused("no saved result", ts=ts, q=ts, lam=ts)
    refused("no saved result", header=np.array([{}], object))
    text = np.array(json.dumps(header))
    refused("does not have the arrays of a Trajectory", header=text, ts=ts, q=ts)
    later = np.array(json.dumps(header | dict(format=2)))
    refused("has the format 2", header=later, ts=ts, q=ts, lam=ts)


def test_nothing_is_written_that_could_not_be_read(tmp_path):
    with pytest.raises(ValueError, match=r"path = 'a\.npy' .* ends in \.npz"):
        path_of_theory(0).save("a.npy")
    narrow = path_of_theory(0).q.astype("bfloat16")
    result = ino.Trajectory(np.arange(3.0), narrow, narrow)
    with pytest.raises(ValueError, match="q of type bfloat16"):
        result.save(tmp_path / "a.npz")
    assert not list(tmp_path.iterdir())


STUDY = config(p=50, ts=[0.0, 0.5, 1.0])


def test_simulations_have_the_names_and_coordinates_of_a_sweep():
    """Together, simulations, their statistics and theory are a sweep's dataset."""
    import xarray as xr

    kinds = ("mean", "std", "trials")
    dataset = ino.sweep(
        STUDY,
        {"rule.tau": [0.5]},
        trials=4,
        key=jr.key(0),
        observables=kinds,
        theory=True,
    )
    cell = dataset.squeeze("rule.tau", drop=True).drop_vars("done")
    cell = cell.drop_vars([name for name in cell if name.startswith("abs_q")])
    runs = ino.simulate(STUDY, key=jr.key(0), trials=4)
    parts = [runs.to_xarray(), runs.mean().to_xarray("mean"), runs.std().to_xarray("std")]
    merged = xr.merge([*parts, ino.mean_field(STUDY).to_xarray()])
    assert set(merged.variables) == set(cell.variables)
    for name, array in cell.variables.items():
        assert merged[name].dims == array.dims
    assert cell.coords.to_dataset().equals(merged.coords.to_dataset())
    assert np.allclose(merged["q_theory"], cell["q_theory"], atol=1e-5)
    assert merged["finite"] == cell["finite"] == 4


def test_predictions_have_the_names_of_a_sweep():
    grid = {"rule.tau": [0.5]}
    dataset = ino.sweep(STUDY, grid, trials=2, key=jr.key(0), theory="bars")
    names = {name for name in dataset if name.endswith("_theory")}
    assert len(names) == 4
    assert names < set(bars(0).to_xarray())


@ALL
def test_a_dataset_has_all_numbers_and_a_frame_a_row_for_each(make):
    result = make(0)
    dataset, frame = result.to_xarray(), result.to_pandas()
    assert np.array_equal(dataset["time"], result.ts)
    sizes = [n for name, n in dataset.sizes.items()]
    assert len(frame) == np.prod(sizes)
    assert set(dataset.dims) <= set(frame.columns)
    arrays = {np.asarray(a).tobytes() for a in dataset.variables.values()}
    lost = [
        name
        for name, value in vars(result).items()
        if isinstance(value, (np.ndarray, jax.Array))
        and np.asarray(value).tobytes() not in arrays
    ]
    # A histogram's intervals are in two coordinates each.
    assert set(lost) <= {"edges", "groups"}
    first = frame.iloc[0]
    for name, array in dataset.data_vars.items():
        if array.dims:
            assert first[name] == np.asarray(array).flat[0] or np.isnan(first[name])


def test_a_frame_is_tidy():
    frame = trajectory(0).to_pandas()
    row = frame[(frame["trial"] == 1) & (frame["time"] == 1 / 3) & (frame["entry"] == 2)]
    assert row["q_trials"].item() == trajectory(0).q[1, 1]
    assert row["x_trials"].item() == trajectory(0).x[1, 1, 2]
    assert "finite" not in frame


def test_kinds_are_words_and_axes_are_known():
    with pytest.raises(ValueError, match=r"kind = 'a b' .* pass a word"):
        path_of_theory(0).to_xarray("a b")
    q = jnp.zeros((2, 2, 3))
    with pytest.raises(ValueError, match=r"q has shape \(2, 2, 3\)"):
        ino.Trajectory(np.arange(3.0), q, q).to_pandas()


@pytest.mark.parametrize(
    ("name", "package"), [("to_xarray", "xarray"), ("to_pandas", "pandas")]
)
def test_a_missing_package_is_named_with_its_install_line(name, package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=rf"{name} needs {package}: pip install .*sweep"):
        getattr(path_of_theory(0), name)()
