"""`inopca sweep`, as a user types it."""

import equinox as eqx
import jax.random as jr
import numpy as np
import pytest
import xarray as xr

import inopca_jax as ino
from inopca_jax._cli.main import main
from inopca_jax._cli.spec import read_spec

from .cases import config

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


CUBE = """{ from = 0.1, to = 1.0, count = 500_000 }
"start.lam0" = { from = 0.1, to = 0.5, count = 500_000 }"""
BAD_SPECS = [
    ('"model.omega" = { from', '"model.omga" = { from', "Did you mean 'model.omega'"),
    ("p = 60", "p = true", "config.p = True"),
    ("p = 60", "p = 60.5", "config.p = 60.5"),
    ("p = 60", 'rule = "oya"', "Did you mean oja"),
    ("p = 60", 'switch_spikes = ["flat"]', "config.switch_spikes has 'flat'"),
    ("p = 60", "points = 6.5", "config.points = 6.5"),
    ("q0 = 0.3", "qo = 0.3", "config.qo is not known"),
    ("[0.2, 0.5, 0.8]", "[]", "empty"),
    ("[0.2, 0.5, 0.8]", "[0.2, true]", "has True"),
    ("trials = 5", "trials = 0", "trials = 0"),
    ("trials = 5", 'trials = "5"', "run.trials = '5'"),
    ("trials = 5", 'fsync = "no"', "run.fsync = 'no'"),
    ("trials = 5", "observables = 3", "run.observables = 3"),
    ("trials = 5", "observables = [3]", "run.observables = [3]"),
    ("trials = 5", "engine = []", "run.engine = []"),
    ("seed = 1", "seeds = 1", "run.seeds is not known"),
    ("seed = 1", 'seed = "a"', "run.seed = 'a'"),
    ("[grid]", "[grit]", "grit is not known"),
    ("[grid]", "[grid]\nrule = [[1]]", "grid.rule has [1]"),
    ("count = 4, ", "", "needs from, to and count"),
    ("count = 4, ", "count = 4.5, ", "count = 4.5"),
    ("from = 0.5", "from = 0.0", "cannot include zero"),
    ("from = 0.5", 'from = "a"', "from = 'a'"),
    ("ts = [0, 1, 2]", 'ts = "x"', "config.ts = 'x'"),
    ("ts = [0, 1, 2]", 'ts = [0, "x"]', "config.ts = 'x'"),
    ("[run]", "[run", "is not TOML"),
    ("count = 4, ", "count = 1e12, ", "grid.model.omega has 1e+12 cells"),
    ("count = 4, ", "count = 1e400, ", "count = inf"),
    ("count = 4, ", f"count = {10**400}, ", "count = 1000000"),
    ("[0.2, 0.5, 0.8]", CUBE, "grid has 1e+12 cells"),
    ("p = 60", "p = 1e400", "config.p = inf"),
    ("p = 60", "p = nan", "config.p = nan"),
    ("p = 60", f"p = {10**400}", "p = 1000000"),
    ("q0 = 0.3", f"q0 = {10**400}", "config.q0 = 1000000"),
    ("q0 = 0.3", "q0 = inf", "config.q0 = inf"),
    ("trials = 5", "trials = 1e400", "run.trials = inf"),
    ("seed = 1", f"seed = {10**400}", "run.seed = 1000000"),
    ("seed = 1", "seed = 2024-01-01", "run.seed = datetime.date(2024, 1, 1)"),
    ("seed = 1", "seed = {}", "run.seed = {}"),
    ("[0.2, 0.5, 0.8]", "[[0.2], 0.5]", "grid"),
    ("[0.2, 0.5, 0.8]", "[{}, 0.5]", "grid"),
    ("[0.2, 0.5, 0.8]", f"[{10**400}]", "grid"),
    ("[0.2, 0.5, 0.8]", "[2024-01-01]", "grid"),
    ("[0.2, 0.5, 0.8]", "[nan]", "tau = nan"),
    ("from = 0.5", "from = nan", "from = nan"),
    ('"model.omega"', '"model."', "grid names 'model.', which does not exist"),
    # What no cell reads.
    ("q0 = 0.3", "degree = 4", "config.degree = 4.0 is not allowed: it is read only"),
    ("q0 = 0.3", "c = 3", "config.c = 3.0"),
    ("q0 = 0.3", 'rule = "ccipca"\ntau = 3', "config.tau = 3"),
    ("q0 = 0.3", 'start = "cold"\nq0 = 0.3', "config.q0 = 0.3"),
    ("q0 = 0.3", "rho = 0.1", "config.rho = 0.1"),
    ("q0 = 0.3", "t_max = 5", "config.t_max = 5.0"),
    ("q0 = 0.3", "points = 5", "config.points = 5"),
    (
        "[grid]",
        'amnesic = 3\n[grid]\nrule = ["oja", "ino-pca"]',
        "config.amnesic = 3.0",
    ),
    # And what an axis sets in every cell.
    ("q0 = 0.3", "tau = 0.3", "config.tau = 0.3 is not allowed: grid.rule.tau sets it"),
    ("q0 = 0.3", "omega = 2", "config.omega = 2 is not allowed: grid.model.omega sets it"),
    (
        "[grid]",
        'rule = "oja"\n[grid]\nrule = ["oja", "ino-pca"]',
        "config.rule = 'oja' is not allowed: grid.rule sets it",
    ),
]


@pytest.mark.parametrize(("old", "new", "message"), BAD_SPECS)
def test_a_bad_spec_is_one_line_and_exit_code_2(old, new, message, tmp_path, capsys):
    (tmp_path / "spec.toml").write_text(SPEC.replace(old, new))
    command = ["sweep", "run", str(tmp_path / "spec.toml"), "--store"]
    assert main([*command, str(tmp_path / "s.zarr")]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert len(error.splitlines()) == 1
    assert [p.name for p in tmp_path.iterdir()] == ["spec.toml"]


def test_a_flag_counts_as_read_if_one_of_the_rules_reads_it(tmp_path):
    both = """
    config = { amnesic = 3, tau = 0.3 }
    grid = { rule = ["ino-pca", "ccipca"], "model.omega" = [1.0, 2.0] }
    """
    (tmp_path / "spec.toml").write_text(both)
    ino_pca, ccipca = read_spec(tmp_path / "spec.toml").grid["rule"]
    assert eqx.tree_equal(ino_pca, ino.InoPCA(0.3))
    assert eqx.tree_equal(ccipca, ino.CCIPCA(3.0))
    for left, unread in (('"ino-pca"', "amnesic"), ('"ccipca"', "tau")):
        text = both.replace('"ino-pca", "ccipca"', left)
        (tmp_path / "spec.toml").write_text(text)
        with pytest.raises(ValueError, match=rf"config\.{unread} = 0?\.?3"):
            read_spec(tmp_path / "spec.toml")


def test_a_sweep_of_which_all_trials_diverge_is_exit_code_1(tmp_path, capsys):
    diverges = """
    config = { rule = "krasulina", p = 60, ts = [0, 1] }
    grid = { "rule.tau" = [110.0, 115.0] }
    run = { trials = 2 }
    """
    (tmp_path / "spec.toml").write_text(diverges)
    store = str(tmp_path / "s.zarr")
    assert main(["sweep", "run", str(tmp_path / "spec.toml"), "--store", store]) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"inopca: all trials of all 2 cells in {store} diverged")
    assert len(error.splitlines()) == 1
    assert main(["sweep", "status", store]) == 0
    assert "in 2 of them some trials diverged" in capsys.readouterr().out


@pytest.mark.parametrize("spec", ["/dev/zero", "/dev/full", "/"])
def test_what_is_no_file_is_refused_as_a_spec(spec, tmp_path, capsys):
    assert main(["sweep", "run", spec, "--store", str(tmp_path / "s.zarr")]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_a_store_that_cannot_be_is_one_line_and_exit_code_2(tmp_path, capsys):
    (tmp_path / "spec.toml").write_text(SPEC)
    (tmp_path / "file").write_text("")
    command = ["sweep", "run", str(tmp_path / "spec.toml"), "--store"]
    assert main([*command, str(tmp_path / "file" / "s.zarr")]) == 2
    assert "cannot be written to" in capsys.readouterr().err
    assert main(["sweep", "status", str(tmp_path / "none.zarr")]) == 2
    assert main(["sweep", "run", str(tmp_path / "none.toml"), "--store", "s.zarr"]) == 2
