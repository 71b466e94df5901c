"""The figure, and the components as images."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from ..._streaming.block import BLOCK
from ...plot import COLOURS, MARKERS, style
from .compute import METHODS, PIXELS, SAMPLES, Arrays, cells_of


def draw(found: Arrays) -> Figure:
    """The distances, a row for each number of components and a column for each
    preparation: the mean over the streams, and how far nine of ten of them spread."""
    cells = [cell.rsplit("/", 1) for cell in cells_of(found)]
    ways, sizes = (list(dict.fromkeys(x)) for x in zip(*cells, strict=True))
    with style():
        shape = (1.2 + 2.4 * len(ways), 0.8 + 1.9 * len(sizes))
        figure, axes = plt.subplots(
            len(sizes), len(ways), figsize=shape, sharex=True, sharey="row", squeeze=False
        )
        for (row, r), (column, way) in (
            (a, b) for a in enumerate(sizes) for b in enumerate(ways)
        ):
            ax = axes[row, column]
            for i, name in enumerate(METHODS):
                if f"{way}/{r}/{name}" in found:
                    _curve(ax, found[f"{way}/{r}/{name}"], i, name)
            ax.set_ylim(bottom=0)
            if row == 0:
                ax.set_title(way)
            if column == 0:
                ax.set_ylabel(f"Grassmann distance\n{r} components")
            if row == len(sizes) - 1:
                ax.set_xlabel("samples")
        handles = axes[0, 0].get_legend_handles_labels()
        figure.legend(*handles, loc="outside upper center", ncols=len(METHODS))
    return figure


def _curve(ax: Any, distances: np.ndarray, index: int, name: str) -> None:
    seen = np.minimum(BLOCK * np.arange(1, distances.shape[1] + 1), SAMPLES)
    low, high = np.quantile(distances, [0.05, 0.95], axis=0)
    look = dict(color=COLOURS[index], marker=MARKERS[index], markevery=(4 + index, 12))
    ax.plot(seen, distances.mean(axis=0), label=name, **look)
    ax.fill_between(seen, low, high, color=COLOURS[index], alpha=0.15, linewidth=0)


def draw_components(found: Arrays, way: str | None = None, columns: int = 5) -> Figure:
    """The first components as images, of offline PCA and of each method."""
    cell = next(c for c in cells_of(found) if c.endswith("/9") and c.startswith(way or ""))
    truth = found[f"{cell}/offline PCA/vectors"]
    with style():
        names = ["offline PCA", *(x for x in METHODS if f"{cell}/{x}" in found)]
        shape = (1.1 * columns + 1.0, 1.12 * len(names))
        figure, axes = plt.subplots(len(names), columns, figsize=shape)
        for row, name in zip(axes, names, strict=True):
            vectors = found[f"{cell}/{name}/vectors"]
            for i, ax in enumerate(row):
                image = vectors[i] * np.sign(vectors[i] @ truth[i])
                edge = np.max(abs(image))
                image = image.reshape(PIXELS, PIXELS)
                ax.imshow(image, cmap="RdBu_r", vmin=-edge, vmax=edge)
                ax.set(xticks=[], yticks=[])
                ax.grid(visible=False)
                ax.spines[:].set_visible(False)
            row[0].set_ylabel(name)
    return figure
