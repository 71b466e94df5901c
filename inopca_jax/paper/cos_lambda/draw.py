"""The drawing of the overlap and the norm over time."""

from matplotlib.figure import Figure

from inopca_jax import plot

from ..claim import Arrays
from ..drawing import draw_reference
from ..learning_curves import OMEGA, curve_of
from .compute import REFERENCE_P


def draw(arrays: Arrays) -> Figure:
    """Draws the overlap on the left and the norm on the right."""
    figure = plot.learning_curves([curve_of(arrays, "INO-PCA")])
    overlap, norm = figure.axes
    # One legend serves both panels.
    legend = norm.get_legend()
    assert legend is not None
    legend.remove()
    with plot.style():
        if "reference/runs/q" in arrays:
            for panel, field in ((overlap, "q"), (norm, "lam")):
                theory = arrays[f"reference/theory/{field}"]
                mean = theory + arrays[f"reference/theory/{field}_shift"]
                draw_reference(panel, arrays, field, mean, REFERENCE_P)
            overlap.legend(loc="lower right", handlelength=1.2)
        norm.axhline(OMEGA + 1, color="0.45", linestyle=":", zorder=1)
        norm.text(0, OMEGA + 1, r"$\omega + 1$", va="bottom", color="0.3")
    return figure
