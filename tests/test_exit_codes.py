"""How a command ends: its exit code, and what it says where."""

import os
import subprocess
import sys

import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import inopca_jax as ino
from inopca_jax._cli.main import main

from .cases import config

QUICK = ["--p", "2000", "--t-max", "1", "--points", "2", "--trials", "3"]


def test_all_trials_diverged_is_one_line_and_exit_code_1(tmp_path, capsys):
    files = ["--out", str(tmp_path / "a.npz"), "--plot", str(tmp_path / "a.png")]
    diverges = ["--rule", "krasulina", "--tau", "190"]
    assert main(["simulate", *QUICK, *diverges, *files]) == 1
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("inopca: all 3 trials diverged")
    assert len(output.err.splitlines()) == 1
    assert not list(tmp_path.iterdir())


def runs_of_which(finite):
    """Stands in for `simulate`: trials of which these are finite."""

    def simulate(config, *, trials, **_):
        shape = (trials, len(config.ts))
        q = jnp.where(jnp.asarray(finite)[:, None], 0.5, jnp.nan) * jnp.ones(shape)
        return ino.Trajectory(config.ts, q, jnp.ones(shape))

    return simulate


def test_some_trials_diverged_is_a_note_and_exit_code_0(monkeypatch, capsys):
    monkeypatch.setattr(ino, "simulate", runs_of_which([True, False, True]))
    assert main(["simulate", *QUICK]) == 0
    output = capsys.readouterr()
    assert output.out.splitlines()[2].split()[2] == "0.5000"
    assert "note: 1 of 3 trials are not finite and left out." in output.err


def test_a_search_that_found_nothing_is_exit_code_1(monkeypatch, tmp_path, capsys):
    nan = float("nan")
    lost = lambda config, **_: ino.Tuned(config, nan, 0.9, nan, np.array([nan]), "lost")
    monkeypatch.setattr(ino, "tune", lost)
    assert main(["tune", "--out", str(tmp_path / "a.npz")]) == 1
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("inopca: the objective is nan")
    assert not list(tmp_path.iterdir())


def test_a_check_of_which_all_trials_diverged_is_exit_code_1(monkeypatch, capsys):
    found = lambda config, **_: ino.Tuned(config, 0.8, 0.9, 0.1, np.array([0.8]), "done")
    monkeypatch.setattr(ino, "tune", found)
    monkeypatch.setattr(ino, "simulate", runs_of_which([False, False]))
    assert main(["tune", "--check", "--trials", "2"]) == 1
    assert capsys.readouterr().err.startswith("inopca: all 2 trials diverged")


@pytest.mark.parametrize("value", [1.0, np.nan])
def test_a_density_of_nothing_is_exit_code_1(value, monkeypatch, tmp_path, capsys):
    one, pdf = jnp.ones(1), jnp.full((1, 1, 1), value)
    found = ino.Density(np.ones(1), one, one, one, pdf, jnp.asarray(False))
    monkeypatch.setattr(ino, "density", lambda *_, **__: found)
    monkeypatch.setattr(ino, "simulate", runs_of_which([False, False]))
    command = ["density", "--trials", "2", "--out", str(tmp_path / "a.npz")]
    assert main(command) == 1
    output = capsys.readouterr()
    said = "the density is not finite" if np.isnan(value) else "all 2 trials diverged"
    assert output.err.startswith(f"inopca: {said}")
    assert output.out == ""
    assert not list(tmp_path.iterdir())


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("sweep") / "s.zarr"
    study = config(p=60, ts=(0.0, 1.0))
    ino.sweep(study, {"rule.tau": [0.2, 0.5]}, trials=2, key=jr.key(0), store=path)
    return path


SHELL = "from inopca_jax._cli.main import run_from_shell; run_from_shell()"
LINES = ["limits", "limits --help", "simulate " + " ".join(QUICK), "sweep status {store}"]


def run(line, store, stdout, unbuffered=""):
    """The command in a process. Unbuffered, Python writes at every print; else at the
    end."""
    return subprocess.run(
        [sys.executable, "-c", SHELL, *line.format(store=store).split()],
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONUNBUFFERED": unbuffered},
    )


@pytest.mark.parametrize(
    ("line", "unbuffered"), [*((x, "") for x in LINES), ("limits", "1")]
)
def test_a_reader_that_has_gone_ends_a_command_quietly(line, unbuffered, store):
    read_end, write_end = os.pipe()
    os.close(read_end)
    with os.fdopen(write_end, "wb") as closed_pipe:
        done = run(line, store, closed_pipe, unbuffered)
    assert done.stderr == ""
    assert done.returncode == 141


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a full device")
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_an_output_that_cannot_be_written_is_one_line_and_exit_code_2(unbuffered, store):
    with open("/dev/full", "wb") as full:
        done = run("limits", store, full, unbuffered)
    assert done.stderr == "inopca: [Errno 28] No space left on device\n"
    assert done.returncode == 2
