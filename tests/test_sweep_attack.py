"""Random grids, damage and bytes: a sweep is right, or says what is wrong."""

import contextlib
import shutil
import tempfile
from pathlib import Path

import jax.random as jr
import numpy as np
import pytest
from hypothesis import given, strategies as st

import inopca_jax as ino
from inopca_jax._cli.spec import read_spec
from inopca_jax._leaves import leaves
from inopca_jax._sweep.grid import Grid
from inopca_jax._sweep.store import Store

from .cases import budgets, config
from .test_sweep_command import SPEC
from .test_sweep_store import tiny


def numbers(low, high):
    values = st.floats(low, high, width=32)
    return st.lists(values, min_size=1, max_size=3, unique=True)


RULES = {"InoPCA": ino.InoPCA, "Oja": ino.Oja, "Krasulina": ino.Krasulina}
STARTS = {"WarmStart": ino.WarmStart, "Box": ino.Box}
some = lambda names: st.lists(st.sampled_from(names), min_size=1, max_size=2, unique=True)
AXES = {
    "rule": some(sorted(RULES)),
    "start": some(sorted(STARTS)),
    "rule.tau": numbers(0.125, 1.0),
    "model.omega": numbers(0.5, 2.0),
    "start.q0": numbers(0.125, 0.5),
    "start.lam0": numbers(0.5, 2.0),
    "model.p": st.lists(st.sampled_from([20, 30]), min_size=1, max_size=2, unique=True),
}


@st.composite
def grids(draw):
    """Some axes in some order; two of them may be zipped."""
    names = draw(st.permutations(sorted(AXES)))[: draw(st.integers(1, 4))]
    grid = {name: draw(AXES[name]) for name in names}
    if len(names) > 1 and draw(st.booleans()):
        both = (names[0], names[1])
        rows = list(zip(grid.pop(both[0]), grid.pop(both[1]), strict=False))
        grid = {both: rows, **grid}
    return grid


def built(name, value):
    """The value that a name of a part stands for."""
    makers = {"rule": RULES, "start": STARTS}.get(name)
    return makers[value]() if makers else value


def spelled_out(label):
    """The config of a label, made the way a user would."""
    get = lambda name, default: label.get(name, default)
    return config(
        RULES[get("rule", "InoPCA")](get("rule.tau", 0.5)),
        p=get("model.p", 25),
        omega=get("model.omega", 1.0),
        start=STARTS[get("start", "WarmStart")](
            get("start.q0", 0.3 if "start" not in label else 0.1), get("start.lam0", 1.0)
        ),
        ts=(0.0, 1.0),
    )


def labels_and_grid(drawn):
    """What each cell of a drawn grid is labelled with, and the grid for `sweep`."""
    rows = {
        (names if isinstance(names, tuple) else (names,)): [
            value if isinstance(names, tuple) else (value,) for value in values
        ]
        for names, values in drawn.items()
    }
    labels = [{}]
    for names, values in rows.items():
        labels = [
            {**label, **dict(zip(names, row, strict=True))}
            for label in labels
            for row in values
        ]
    made = {
        names: [tuple(map(built, names, row)) for row in values]
        for names, values in rows.items()
    }
    return labels, made


@budgets(quick=20, long=500)
@given(grids())
def test_every_cell_of_a_grid_is_the_config_that_its_label_spells_out(folder, drawn):
    labels, made = labels_and_grid(drawn)
    grid = Grid(config(p=25, ts=(0.0, 1.0)), made)
    assert sorted(c for g in grid.groups for c in g.cells.tolist()) == [*range(len(labels))]
    for group in grid.groups:
        for row, cell in enumerate(group.cells):
            one, same = group.config_of(row), spelled_out(labels[cell])
            for part in ("rule", "model", "start"):
                assert type(getattr(one, part)) is type(getattr(same, part))
            mine, its = (leaves(c) for c in (one, same))
            assert mine.keys() == its.keys()
            assert all(np.array_equal(mine[name], its[name]) for name in mine)
            assert one.model.p == same.model.p


@pytest.mark.slow
@budgets(quick=2, long=60)
@given(grids(), st.integers(0, 2**32 - 1), st.data())
def test_a_cell_of_a_sweep_is_what_simulate_makes_of_its_label(folder, drawn, seed, data):
    labels, made = labels_and_grid(drawn)
    cell = data.draw(st.integers(0, len(labels) - 1))
    key = jr.key(seed)
    found = ino.sweep(config(p=25, ts=(0.0, 1.0)), made, trials=4, key=key)
    runs = ino.simulate(spelled_out(labels[cell]), key=jr.fold_in(key, cell), trials=4)
    mean = found.q_mean.values.reshape(len(labels), 2)[cell]
    assert np.allclose(mean, runs.mean().q, atol=1e-4)


def outcome(path):
    """The results of a store that reads and verifies, or None if it says it is damaged."""
    try:
        store = Store(path)
        if list(store.damaged()):
            return None
        return store.results()
    except ValueError:
        return None


@budgets(quick=300, long=10_000)
@given(st.data())
def test_a_flipped_bit_anywhere_in_a_store_is_found(folder, data):
    """In each file: none of them is without a checksum."""
    path = folder / "s.zarr"
    if not path.exists():
        tiny(path)
    files = sorted(p for p in path.rglob("*") if p.is_file())
    file = data.draw(st.sampled_from(files))
    whole = file.read_bytes()
    place = data.draw(st.integers(0, 8 * len(whole) - 1))
    flipped = bytearray(whole)
    flipped[place // 8] ^= 1 << place % 8
    try:
        file.write_bytes(flipped)
        assert outcome(path) is None
    finally:
        file.write_bytes(whole)
    assert np.array_equal(outcome(path)[:, 0, 0], [0.25, 0.75, 0.5])


@budgets(quick=60)
@given(st.data(), st.binary(max_size=200))
def test_random_bytes_in_a_store_raise_nothing_but_our_errors(folder, data, content):
    """In place of a file, or as a file more."""
    whole = folder / "whole.zarr"
    if not whole.exists():
        tiny(whole)
    files = [p.relative_to(whole) for p in whole.rglob("*") if p.is_file()]
    more = [Path(".leases/3"), Path("flags/c.999.0"), Path("results/c.x")]
    name = data.draw(st.sampled_from(sorted([*files, *more])))
    with tempfile.TemporaryDirectory(dir=folder) as other:
        path = Path(other) / "s.zarr"
        shutil.copytree(whole, path)
        (path / name).parent.mkdir(exist_ok=True)
        (path / name).write_bytes(content)
        found = outcome(path)
        assert (found is None) == (name in files)


def read(folder, content):
    """Reads a spec, and its grid."""
    path = folder / "spec.toml"
    path.write_bytes(content)
    with contextlib.suppress(ValueError):
        spec = read_spec(path)
        Grid(spec.config, spec.grid)


@budgets(quick=60)
@given(st.binary(max_size=300))
def test_random_bytes_as_a_spec_raise_nothing_but_our_errors(folder, content):
    read(folder, content)


VALUES = st.sampled_from(
    [
        *("1", "-1", "0", "1e400", "nan", "-inf", "true", '"x"', "[]", "[1]", "{}"),
        *(str(10**400), "2024-01-01", '["oja"]', "[{}]", "[[1]]", "{ from = 0 }"),
        "{ from = 0, to = 1, count = 3 }",
    ]
)


@budgets(quick=150)
@given(st.data())
def test_a_spec_with_a_value_of_another_kind_raises_nothing_but_our_errors(folder, data):
    lines = SPEC.strip().splitlines()
    places = [i for i, line in enumerate(lines) if " = " in line]
    for place in data.draw(st.lists(st.sampled_from(places), min_size=1, max_size=3)):
        name = lines[place].split(" = ")[0]
        lines[place] = f"{name} = {data.draw(VALUES)}"
    read(folder, "\n".join(lines).encode())
