"""The drawing of the overlaps at fixed and adaptive rates."""

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from inopca_jax import plot

from ..claim import Arrays
from ..drawing import overlap_panel
from .compute import configs


def draw(arrays: Arrays) -> Figure:
    """Draws the overlaps."""
    with plot.style():
        figure, ax = plt.subplots(figsize=(5.8, 4.2))
        handles = overlap_panel(ax, arrays, list(configs()))
        figure.legend(handles=handles, loc="outside upper center", ncols=3)
    return figure
