"""The notebooks run, show what they say, and are equal to their scripts."""

import runpy
from pathlib import Path

import jupytext
import matplotlib.pyplot as plt
import numpy as np
import pytest

import inopca_jax as ino

SCRIPTS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.py"))


def slope(x, y):
    return np.polyfit(np.log(x), np.log(y), 1)[0]


def near(a, b, tolerance):
    return bool(np.all(np.abs(np.asarray(a) - np.asarray(b)) < tolerance))


SHOWS = {
    "quick_start": lambda names: (
        near(names["runs"].mean().q[-1], names["q_s"], 0.01)
        and len(names["curves"]) == len(names["rules"])
        and near(names["slopes"].mean(), names["slope"], 5 * names["slopes"].std() / 8)
    ),
    "theory": lambda names: (
        # Without p = 100, where the next order is not small.
        near(slope(names["ps"][1:], names["shift"][1:]), -1, 0.4)
        and near(slope(names["ps"][1:], names["std"][1:]), -0.5, 0.1)
        and near(names["law"].q, names["cold_runs"].mean().q, 0.1)
    ),
    "own_rule": lambda names: all(
        near(curve.runs.mean().q[-1], curve.theory.q[-1], 0.02)
        for curve in names["curves"]
        if curve.runs is not None
    ),
    "phase_diagram": lambda names: near(
        *(
            x[names["omegas"] > 0.8]
            for x in (names["section"].abs_q_mean, names["section"].q_theory)
        ),
        0.05,
    ),
    "tuning": lambda names: names["schedule"].gap < 1e-5 and names["robust"].value < 0.1,
    "three_components": lambda names: (
        near(names["distance"].mean(), ino.steady_distance(names["config"]), 0.05)
        # The weakest component, at t = 10, alone and entangled.
        and names["curves"]["own spike"].theory.matched_overlaps()[20, 2] > 0.8
        and names["curves"]["all spikes"].theory.matched_overlaps()[20, 2] < 0.4
        and names["tuned"].value < names["tuned"].values[0]
        and np.median(names["distances"][0.5][:, -1]) < 0.8
    ),
    "streaming": lambda names: all(
        last["INO-PCA"] < 0.5 * last["IncrementalPCA"]
        for last in names["last_distances"].values()
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_notebook_runs(script):
    assert SHOWS[script.stem](runpy.run_path(str(script)))
    plt.close("all")


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_notebook_was_executed_and_is_its_script(script):
    source, notebook = (jupytext.read(script.with_suffix(end)) for end in (".py", ".ipynb"))
    assert [c.source for c in source.cells] == [c.source for c in notebook.cells]
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(cell.execution_count for cell in code)
    assert not any(out.output_type == "error" for cell in code for out in cell.outputs)
