"""The drawing of `fig:adaptive_comparison`."""

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from inopca_jax import plot

from ..claim import Arrays
from ..drawing import limit_line, overlap_panel
from ..labels import in_words
from .compute import ADAPTIVE, CHANGE, CONSTANT, configs


def draw(arrays: Arrays) -> Figure:
    """Draws the overlaps with the spike in force."""
    with plot.style():
        figure, ax = plt.subplots(figsize=(7.0, 3.9))
        ax.axvline(CHANGE, color="0.75", linewidth=0.8, zorder=0)
        handles = overlap_panel(ax, arrays, list(configs()))
        ts, q = arrays[f"{ADAPTIVE}/theory/ts"], arrays[f"{CONSTANT}/theory/q"]
        handles.append(limit_line(ax, ts, q, in_words(CONSTANT), "-."))
        figure.legend(handles=handles, loc="outside upper center", ncols=3)
    return figure
