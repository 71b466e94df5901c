"""The style of the figures, and how they are saved."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from .._check import Checked, refuse, require_instance, require_path
from .._files import whole_file

# Okabe and Ito's colours, which colour-blind readers can tell apart, and markers for prints
# without colour.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")

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
    "savefig.dpi": 200,
}


@contextlib.contextmanager
def style() -> Iterator[None]:
    """Returns a context in which figures are made in this package's style."""
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
