"""The drawing of the overlaps at fixed and adaptive rates."""

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from inopca_jax import plot

from ..figure import Arrays
from ..learning_curves import as_curves, overlap_panel


def draw(arrays: Arrays) -> Figure:
    """Draws the overlaps."""
    with plot.style():
        figure, ax = plt.subplots(figsize=(4.6, 3.6))
        handles = overlap_panel(ax, as_curves(arrays))
        figure.legend(handles=handles, loc="outside upper center", ncols=3)
    return figure
