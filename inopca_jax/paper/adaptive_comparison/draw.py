"""The drawing of `fig:adaptive_comparison`."""

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from inopca_jax import plot

from ..learning_curves import TAU, Arrays, as_curves, limit_line, overlap_panel
from .compute import ADAPTIVE, CHANGE, CONSTANT


def draw(arrays: Arrays) -> Figure:
    """Draws the overlaps with the spike in force."""
    with plot.style():
        figure, ax = plt.subplots(figsize=(7.0, 3.5))
        ax.axvline(CHANGE, color="0.75", linewidth=0.8, zorder=0)
        handles = overlap_panel(ax, as_curves(arrays))
        ts, q = arrays[f"{ADAPTIVE}/theory/ts"], arrays[f"{CONSTANT}/theory/q"]
        handles.append(limit_line(ax, ts, q, rf"INO-PCA, $\tau$ = {TAU:g}", "-."))
        figure.legend(handles=handles, loc="outside upper center", ncols=len(handles))
    return figure
