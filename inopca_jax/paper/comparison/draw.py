"""The drawing of `fig:comparison`."""

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from inopca_jax import plot

from ..claim import Arrays
from ..drawing import limit_line, overlap_panel
from .compute import INO, configs


def draw(arrays: Arrays) -> Figure:
    """Draws the overlaps of the three algorithms and the limits in grey."""
    with plot.style():
        figure, ax = plt.subplots(figsize=(5.2, 4.4))
        handles = overlap_panel(ax, arrays, list(configs()))
        ts = arrays[f"{INO}/theory/ts"]
        handles += [
            limit_line(ax, ts, arrays["best gain/q"], "best gain, oracle", ":"),
            limit_line(ax, ts, arrays["offline/q"], "offline PCA", "--"),
        ]
        figure.legend(handles=handles, loc="outside upper center", ncols=2)
    return figure
