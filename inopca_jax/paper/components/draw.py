"""The drawing of the figure `components`."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from inopca_jax import plot

from ..claim import Arrays
from ..drawing import points, time_axis
from ..statistics import Mean, mean_of
from .compute import CHAIN, OMEGAS, STREAM

_NAMES = {
    "q": r"overlap with the own spike",
    "lam": r"norm $\lambda_t$",
    "distance": "Grassmann distance",
}


def draw(arrays: Arrays) -> Figure:
    """Draws overlaps, norms and the distance."""
    with plot.style():
        figure, axes = plt.subplots(1, 3, figsize=(10.2, 3.4))
        for ax, (quantity, name) in zip(axes, _NAMES.items(), strict=True):
            columns = range(len(OMEGAS)) if quantity != "distance" else [None]
            for i in columns:
                _draw(ax, arrays, quantity, i)
            ax.set_ylabel(name)
        time_axis(*axes)
        figure.legend(handles=_handles(arrays), loc="outside upper center", ncols=5)
    return figure


def _draw(ax: Axes, arrays: Arrays, quantity: str, i: int | None) -> None:
    at = (...,) if i is None else (..., i)
    ts, colour = arrays["ts"], "black" if i is None else plot.COLOURS[i]
    ax.plot(ts, arrays[f"theory/{quantity}"][at], color=colour)
    ax.axhline(
        float(arrays[f"steady/{quantity}"][at]), color=colour, linestyle=":", linewidth=1
    )
    if quantity != "lam":
        # Before t = 0 there are no samples.
        offline = arrays[f"offline/{quantity}"][at][1:]
        light = dict(color="0.55" if i is None else colour, linestyle="--", linewidth=1)
        ax.plot(ts[1:], offline, alpha=0.6, **light)  # pyright: ignore
    for name, first, filling in ((CHAIN, 0, colour), (STREAM, 2, "white")):
        mean = mean_of(arrays[f"{name}/{quantity}"])
        shown = slice(first, None, 4)
        value = Mean(mean.value[shown][at], mean.error[shown][at])
        style = dict(fmt="o", color=colour, mfc=filling)
        points(ax, ts[shown], value, 0, **style)


def _handles(arrays: Arrays) -> list[Line2D]:
    lines = [
        Line2D([], [], color=plot.COLOURS[i], linewidth=4, label=rf"$\omega$ = {omega:g}")
        for i, omega in enumerate(OMEGAS)
    ]
    grey: dict = dict(color="0.3")
    count = lambda name: len(np.asarray(arrays[f"{name}/q"]))
    return [
        *lines,
        Line2D([], [], label="matrix ODE", **grey),
        Line2D([], [], label="steady state", linestyle=":", **grey),
        Line2D([], [], label="offline PCA", linestyle="--", **grey),
        Line2D([], [], label=f"{CHAIN}, {count(CHAIN)} trials", ls="", marker="o", **grey),
        Line2D(
            [],
            [],
            label=f"{STREAM}, {count(STREAM)} trials",
            ls="",
            marker="o",
            mfc="white",
            **grey,
        ),
    ]
