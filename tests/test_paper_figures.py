"""Every figure of the report is computed, drawn and checked in its quick form."""

import os

import matplotlib.pyplot as plt
import numpy as np
import pytest

from inopca_jax import data
from inopca_jax.paper import FIGURES
from tests.test_paper_labels import NOT_FOR_READERS

needs_faces = pytest.mark.skipif(
    not os.environ.get(data.FACES), reason=f"no faces: set {data.FACES}"
)


@pytest.mark.slow
@pytest.mark.parametrize(
    "figure",
    [
        pytest.param(
            figure, id=figure.name, marks=needs_faces if figure.name == "olivetti" else ()
        )
        for figure in FIGURES
    ],
)
def test_verdicts_are_those_on_record(figure, tmp_path):
    """From arrays that were written and read, as in the report."""
    arrays = figure.compute(True)
    assert all(isinstance(value, np.ndarray) for value in arrays.values())
    np.savez(tmp_path / "arrays.npz", **arrays)
    with np.load(tmp_path / "arrays.npz") as file:
        arrays = dict(file)
    for claim in figure.claims(arrays):
        assert claim.verdict == claim.recorded, claim
        shown = (claim.source, claim.statement, claim.evidence, claim.explanation)
        assert [text for text in shown if NOT_FOR_READERS.search(text)] == []
    for name, draw in figure.drawings.items():
        draw(arrays).savefig(tmp_path / f"{name}.png")
        assert (tmp_path / f"{name}.png").stat().st_size > 10_000
        plt.close("all")


def test_names_and_places_in_the_order_of_work_are_unique():
    assert len({figure.name for figure in FIGURES}) == len(FIGURES)
    assert len({figure.work_order for figure in FIGURES}) == len(FIGURES)
    drawings = [name for figure in FIGURES for name in figure.drawings]
    assert len(set(drawings)) == len(drawings)


@pytest.mark.parametrize("quick", [True, False])
def test_figures_have_configs_and_a_description(quick):
    for figure in FIGURES:
        assert figure.configs(quick) or figure.name == "olivetti"
        title, _, caption = figure.description.partition("\n\n")
        assert title.strip()
        assert caption.strip()
