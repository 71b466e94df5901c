"""The drawing of the densities of Example 1."""

from matplotlib.figure import Figure

from ..densities import draw_densities
from ..figure import Arrays


def draw(arrays: Arrays) -> Figure:
    """Draws a panel a time."""
    return draw_densities(arrays)
