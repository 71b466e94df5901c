"""The drawing of `fig:comparison`."""

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from inopca_jax import plot

from ..learning_curves import Arrays, as_curves, limit_line, overlap_panel
from .compute import INO


def draw(arrays: Arrays) -> Figure:
    """Draws the overlaps of the three algorithms and the limits in grey."""
    with plot.style():
        figure, ax = plt.subplots(figsize=(4.6, 3.8))
        handles = overlap_panel(ax, as_curves(arrays))
        ts = arrays[f"{INO}/theory/ts"]
        handles += [
            limit_line(ax, ts, arrays["best gain/q"], "best gain, oracle", ":"),
            limit_line(ax, ts, arrays["offline/q"], "offline PCA", "--"),
        ]
        figure.legend(handles=handles, loc="outside upper center", ncols=2)
    return figure
