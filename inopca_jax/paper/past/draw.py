"""The drawing of the figure `past`."""

from typing import Any

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from inopca_jax import plot

from ..claim import Arrays
from ..drawing import points, time_axis
from ..statistics import mean_of
from .compute import INO, PAST, PETRELS, gaps


def draw(arrays: Arrays) -> Figure:
    """Draws the distance over time, and how far the overlap is from that of INO-PCA."""
    with plot.style():
        figure, (left, right) = plt.subplots(1, 2, figsize=(7.6, 3.3))
        ts, taus = arrays["ts"], arrays["taus"]
        for i, name in enumerate((INO, PAST, PETRELS)):
            theory = arrays[f"{name}/theory/distance"]
            left.plot(ts, theory, color=plot.COLOURS[i], label=f"{name}, theory")
        measured = mean_of(arrays[f"{PAST}/runs/distance"])
        points(left, ts[::2], measured[::2], 1, label=f"{PAST}, chain")
        left.set(ylabel="Grassmann distance", ylim=(0, None))
        left.legend()
        time_axis(left)
        style: dict[str, Any] = dict(markersize=4.5, linewidth=1.2)
        for i, name in enumerate((PAST, PETRELS), start=1):
            largest, at_rest = gaps(arrays, name)
            colour, marker = plot.COLOURS[i], plot.MARKERS[i]
            label = f"{name}, along the path"
            right.plot(taus, largest, color=colour, marker=marker, label=label, **style)
            if name == PETRELS:
                style |= dict(linestyle="--", markerfacecolor="none")
                label = f"{name}, at rest"
                right.plot(taus, at_rest, color=colour, marker=marker, label=label, **style)
        right.set(xscale="log", yscale="log", xlabel=r"rate $\tau$")
        right.set_xticks(taus, [f"{tau:g}" for tau in taus])
        right.set_xticks([], minor=True)
        right.set_ylabel(r"distance from INO-PCA's $q_t$")
        right.legend()
    return figure
