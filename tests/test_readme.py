"""What the README shows is run."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from inopca_jax import data
from inopca_jax.cli import main

from .cases import sparing

ROOT = Path(__file__).parents[1]
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)


# What takes the longest to compile: blocks on which no other builds.
LONG = re.compile(r"overlap_law\(|ino\.tune\(|ino\.sensitivity\(")


@pytest.mark.parametrize("whole", sparing([False, True]))
def test_the_python_blocks_run_in_their_order(whole, monkeypatch, tmp_path):
    blocks = [text for language, text in BLOCKS if language == "python"]
    blocks = [text for text in blocks if whole or not LONG.search(text)]
    assert len(blocks) >= 3
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    for text in blocks:
        exec(compile(text, "README.md", "exec"), names)
    # A rule of the reader's own has an engine, a limit and a steady state.
    assert bool(names["runs"].finite.all())
    assert abs(names["runs"].mean().q[-1] - names["ode"].q[-1]) < 0.05


def commands():
    lines = [
        line for language, text in BLOCKS if language == "sh" for line in text.splitlines()
    ]
    return [line for line in lines if line.strip() and not line.startswith("#")]


SWEEP = [c for c in commands() if c.startswith("inopca sweep")]


@pytest.mark.parametrize(
    "line",
    sparing([c for c in commands() if c.startswith("inopca") and c not in SWEEP]),
)
def test_the_commands_run(line, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    np.save("data.npy", data.digits())
    assert main(shlex.split(line)[1:]) == 0


def test_the_commands_of_a_sweep_run_in_their_order(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (spec,) = [text for language, text in BLOCKS if language == "toml"]
    Path("spec.toml").write_text(spec)
    assert len(SWEEP) == 5
    for line in SWEEP:
        assert main(shlex.split(line)[1:]) == 0


def test_the_make_targets_exist():
    makefile = (ROOT / "Makefile").read_text()
    targets = [line.split()[1] for line in commands() if line.startswith("make")]
    assert targets
    assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in targets)


def test_no_command_is_shown_that_the_others_do_not_test():
    assert [c for c in commands() if not c.startswith(("inopca ", "make "))] == []
