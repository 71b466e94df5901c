"""The notebooks run, and are the scripts that they are made from."""

import runpy
from pathlib import Path

import jupytext
import matplotlib.pyplot as plt
import pytest

SCRIPTS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.py"))


SHOWS = {
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
