"""The notebooks run, and are the scripts that they are made from."""

import runpy
from pathlib import Path

import jupytext
import matplotlib.pyplot as plt
import numpy as np
import pytest

SCRIPTS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.py"))


def slope(x, y):
    return np.polyfit(np.log(x), np.log(y), 1)[0]


def near(a, b, off):
    return bool(np.all(np.abs(np.asarray(a) - np.asarray(b)) < off))


SHOWS = {
    "quick_start": lambda names: (
        near(names["runs"].mean().q[-1], names["q_s"], 0.01)
        and len(names["curves"]) == len(names["rivals"])
    ),
    "theory": lambda names: (
        # At p = 100 the next order shows.
        near(slope(names["ps"][1:], names["gap"][1:]), -1, 0.4)
        and near(slope(names["ps"][1:], names["spread"][1:]), -0.5, 0.1)
        and near(names["law"].q, names["walks"].mean().q, 0.1)
    ),
    "own_rule": lambda names: all(
        near(curve.runs.mean().q[-1], curve.theory.q[-1], 0.02)
        for curve in names["curves"]
        if curve.runs is not None
    ),
    "phase_diagram": lambda names: near(
        *(
            x[names["omegas"] > 0.8]
            for x in (names["cut"].abs_q_mean, names["cut"].q_theory)
        ),
        0.05,
    ),
    "tuning": lambda names: names["whole"].gap < 1e-5 and names["robust"].value < 0.1,
    "streaming": lambda names: all(
        end["INO-PCA"] < 0.5 * end["IncrementalPCA"] for end in names["followed"].values()
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_notebook_runs(script):
    """And what it shows is so."""
    assert SHOWS[script.stem](runpy.run_path(str(script)))
    plt.close("all")


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_notebook_was_executed_and_is_its_script(script):
    source, notebook = (jupytext.read(script.with_suffix(end)) for end in (".py", ".ipynb"))
    assert [c.source for c in source.cells] == [c.source for c in notebook.cells]
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(cell.execution_count for cell in code)
    assert not any(out.output_type == "error" for cell in code for out in cell.outputs)
