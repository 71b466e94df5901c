"""The style of the figures, and how they are saved."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .._check import Checked, refuse, require_instance, require_path
from .._files import whole_file

# Okabe and Ito's colours, which colour-blind readers can tell apart, and markers for prints
# without colour.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")

PIXELS_PER_INCH = 200
"""Of saved figures."""

_STYLE = {
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 10,
    "figure.constrained_layout.use": True,
    "figure.dpi": 100,
    "font.size": 10,
    "grid.alpha": 0.25,
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "lines.markersize": 4,
    "savefig.dpi": PIXELS_PER_INCH,
}


Panels: TypeAlias = Axes | np.ndarray | list[Axes] | None
"""Where to draw: one Axes, or an array or list of them for several panels."""

Drawn: TypeAlias = Any
"""What a function drew on: the `Panels` that were passed, or else its own `Figure`."""


def panels(
    ax: Any, rows: int, columns: int, size: tuple[float, float], **shared: Any
) -> tuple[Drawn, np.ndarray]:
    """Returns what a plotting function is to return, and the Axes that it draws on.

    **Arguments:**

    - `ax`: the Axes to draw on; None makes a figure.
    - `rows`, `columns`: the shape of the array.
    - `size`: the size of that figure.
    - `shared`: `sharex` and `sharey` of that figure.
    """
    if ax is None:
        options: dict[str, Any] = dict(figsize=size, squeeze=False, **shared)
        return plt.subplots(rows, columns, **options)
    given = np.asarray(ax, dtype=object)
    shape = (rows, columns)
    is_row = given.ndim < 2 and given.size == rows * columns
    if not (is_row or given.shape == shape) or not all(
        isinstance(panel, Axes) for panel in given.flat
    ):
        wanted = "one Axes" if shape == (1, 1) else f"an array of Axes of shape {shape}"
        refuse("ax", ax, f"pass {wanted}, or leave it out")
    return ax, given.reshape(shape)


def finish_over_time(ax: Axes, label: str) -> None:
    """Labels the axes of a panel over time, and adds its legend."""
    ax.set_xlabel(r"time $t = k/p$")
    ax.set_ylabel(label)
    ax.margins(x=0.02)
    ax.legend()


@contextlib.contextmanager
def style() -> Iterator[None]:
    """Returns a context in which figures are made in this package's style.

    **Returns:**

    A context manager.

    **Example:**

    ```pycon
    >>> import matplotlib.pyplot as plt
    >>> from inopca_jax import plot
    >>> with plot.style():
    ...     figure, ax = plt.subplots()
    >>> plt.close(figure)
    ```
    """
    with plt.rc_context(_STYLE):  # pyright: ignore[reportArgumentType]
        yield
        # A notebook's backend turns interactive mode on when its first figure is made;
        # leaving `rc_context` would turn it off again for all later figures.
        is_interactive = plt.isinteractive()
    mpl.interactive(is_interactive)


def save(figure: Checked[Figure], *paths: Checked[str | Path]) -> None:
    """Saves a figure to one or more files, and closes it.

    **Arguments:**

    - `figure`: a matplotlib `Figure`.
    - `paths`: the files. Their suffixes (`.png`, `.pdf`, `.svg`) give the formats.

    **Returns:**

    Nothing.

    **Example:**

    ```pycon
    >>> import os, tempfile
    >>> from inopca_jax import plot
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     plot.save(plot.scree([3.0, 1.0], total=5.0), f"{folder}/scree.png")
    ...     print(os.listdir(folder))
    ['scree.png']
    ```
    """
    require_instance("figure", figure, Figure)
    if not paths:
        refuse("paths", paths, "pass at least one path")
    formats = figure.canvas.get_supported_filetypes()
    files = [require_path("paths", path) for path in paths]
    for path in files:
        if path.suffix[1:].lower() not in formats:
            refuse("paths", str(path), f"pass a suffix out of {', '.join(formats)}")
    with style():
        for path in files:
            with whole_file(path) as temporary:
                figure.savefig(temporary)
    plt.close(figure)
