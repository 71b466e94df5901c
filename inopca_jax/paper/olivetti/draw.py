"""The drawings of `fig:olivetti`: the distances, and the components as images."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from inopca_jax import plot

from ..claim import Arrays
from ..labels import in_words
from .compute import DETAILED, METHODS, PIXELS, SAMPLES, SPACING, cases_of


def draw(arrays: Arrays) -> Figure:
    """Draws the distances, with a row for each number of components and a column for each
    preparation: means over streams, and bands that contain nine out of ten streams."""
    cases = [case.rsplit("/", 1) for case in cases_of(arrays)]
    preparations, sizes = (list(dict.fromkeys(x)) for x in zip(*cases, strict=True))
    shape = len(sizes), len(preparations)
    axes: Any
    with plot.style():
        figure, axes = plt.subplots(
            *shape,
            figsize=(1.2 + 2.4 * shape[1], 0.8 + 1.9 * shape[0]),
            sharex=True,
            sharey="row",
            squeeze=False,
        )
        for row, column in np.ndindex(shape):
            ax, case = axes[row, column], f"{preparations[column]}/{sizes[row]}"
            for i, name in enumerate(METHODS):
                if f"{case}/{name}" in arrays:
                    _draw_distances(ax, arrays[f"{case}/{name}"], i, name)
            ax.set_ylim(bottom=0)
        for ax, name in zip(axes[0], preparations, strict=True):
            ax.set_title(in_words(name))
        for ax, size in zip(axes[:, 0], sizes, strict=True):
            ax.set_ylabel(f"Grassmann distance\n{size} components")
        for ax in axes[-1]:
            ax.set_xlabel("samples")
        handles = axes[0, 0].get_legend_handles_labels()
        figure.legend(*handles, loc="outside upper center", ncols=len(METHODS))
    return figure


def _draw_distances(ax: Axes, distances: np.ndarray, index: int, name: str) -> None:
    samples = np.minimum(SPACING * np.arange(1, distances.shape[1] + 1), SAMPLES)
    low, high = np.quantile(distances, [0.05, 0.95], axis=0)
    colour, marker = plot.COLOURS[index], plot.MARKERS[index]
    style: dict[str, Any] = dict(color=colour, marker=marker, markevery=(4 + index, 12))
    ax.plot(samples, distances.mean(axis=0), label=name, **style)
    ax.fill_between(samples, low, high, color=colour, alpha=0.15, linewidth=0)


def draw_components(arrays: Arrays, columns: int = 5) -> Figure:
    """Draws the first components as images, of offline PCA and of each method, for the
    first preparation."""
    case = next(case for case in cases_of(arrays) if case.endswith(f"/{DETAILED}"))
    truth = arrays[f"{case}/offline PCA/vectors"]
    names = ["offline PCA", *(name for name in METHODS if f"{case}/{name}" in arrays)]
    with plot.style():
        size = (1.1 * columns + 1.0, 1.12 * len(names))
        figure, axes = plt.subplots(len(names), columns, figsize=size)
        for row, name in zip(axes, names, strict=True):
            vectors = arrays[f"{case}/{name}/vectors"]
            for i, ax in enumerate(row):
                image = vectors[i] * np.sign(vectors[i] @ truth[i])
                largest = np.max(abs(image))
                image = image.reshape(PIXELS, PIXELS)
                ax.imshow(image, cmap="RdBu_r", vmin=-largest, vmax=largest)
                ax.set(xticks=[], yticks=[])
                ax.grid(visible=False)
                ax.spines[:].set_visible(False)
            row[0].set_ylabel(name)
    return figure
