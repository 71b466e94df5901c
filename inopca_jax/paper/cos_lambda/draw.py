"""The drawing of the overlap and the norm over time."""

from matplotlib.figure import Figure

from inopca_jax import plot

from ..claim import Arrays
from ..learning_curves import OMEGA, as_curves


def draw(arrays: Arrays) -> Figure:
    """Draws the overlap on the left and the norm on the right."""
    figure = plot.learning_curves(as_curves(arrays))
    norm = figure.axes[1]
    # One legend serves both panels.
    legend = norm.get_legend()
    assert legend is not None
    legend.remove()
    with plot.style():
        norm.axhline(OMEGA + 1, color="0.45", linestyle=":", zorder=1)
        norm.text(0, OMEGA + 1, r"$\omega + 1$", va="bottom", color="0.3")
    return figure
