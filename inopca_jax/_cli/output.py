"""Tables, files and figures of the commands."""

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import inopca_jax as ino

from .._files import whole_file

FIGURES = (".png", ".pdf", ".svg")


class Failed(Exception):
    """Raised if a command ran and has no usable result."""


@dataclass(frozen=True)
class Files:
    """The files of the results."""

    out: Path | None = None
    """Where to write the numbers: .npz, and of simulate also .csv (the table at all
    times)."""
    plot: Path | None = None
    """Where to draw the figure: .png, .pdf or .svg."""
    progress: bool | None = None
    """Show a progress bar; by default if messages go to a terminal."""

    def require_writable(self, *more_suffixes: str) -> None:
        """Raises a `ValueError`, before anything runs, if a file could not be written
        later."""
        require_writable("out", self.out, (".npz", *more_suffixes))
        require_writable("plot", self.plot, FIGURES)

    @property
    def shows_progress(self) -> bool:
        return shows_progress(self.progress)

    def simulate(
        self, config: ino.Config, key: Any, trials: int, engine: ino.AbstractEngine
    ) -> Any:
        """Returns trials; raises `Failed` if all of them diverged."""
        bar = self.shows_progress
        runs = ino.simulate(config, key=key, trials=trials, engine=engine, progress=bar)
        if not np.any(runs.finite):
            raise Failed(
                f"all {trials} trials diverged: pass a smaller learning rate or a larger p."
            )
        return runs

    def write(
        self, arrays: Mapping[str, Any], columns: Mapping[str, Any] | None = None
    ) -> None:
        """Writes arrays as .npz, or columns as .csv, if `out` is given."""
        if self.out is None:
            return
        with whole_file(self.out) as path:
            if columns is not None and path.suffix == ".csv":
                header = ",".join(columns).replace(" ", "_")
                rows = np.column_stack([np.asarray(c, float) for c in columns.values()])
                np.savetxt(path, rows, "%.17g", ",", header=header, comments="")
            else:
                np.savez_compressed(path, **arrays)
        print(f"numbers: {self.out}")

    def draw(self, figure: Callable[[Any], Any]) -> None:
        """Saves a figure, which a function makes of the module `plot`, if `plot` is
        given."""
        if self.plot is not None:
            save_figure(self.plot, figure)


def save_figure(path: Path, figure: Callable[[Any], Any]) -> None:
    """Saves a figure, which a function makes of the module `plot`."""
    from .. import plot  # takes long, and most commands draw nothing

    plot.save(figure(plot), path)
    print(f"figure: {path}")


def shows_progress(progress: bool | None) -> bool:
    """Returns whether to show a progress bar: by default if messages go to a terminal."""
    return sys.stderr.isatty() if progress is None else progress


def require_writable(name: str, path: Path | None, suffixes: tuple[str, ...]) -> None:
    """Raises a `ValueError`, before anything runs, if a file could not be written later."""
    if path is None:
        return
    if path.suffix not in suffixes:
        raise ValueError(
            f"{name} = {path} is not allowed: it must end in {' or '.join(suffixes)}."
        )
    if path.exists() and not (path.is_file() and os.access(path, os.W_OK)):
        raise ValueError(
            f"{name} = {path} cannot be written to: it exists and is not a writable file. "
            "Pass another path."
        )
    require_folder(name, path, path.parent)


def require_folder(name: str, path: Path, folder: Path) -> None:
    """Raises a `ValueError`, before anything runs, if the folder of a path could not be
    created or written to. It is not created yet: another argument may still be invalid."""
    existing = next(f for f in (folder, *folder.absolute().parents) if f.exists())
    try:
        with tempfile.TemporaryFile(dir=existing):
            pass
    except OSError as error:
        raise ValueError(f"{name} = {path} cannot be written to: {error}.") from None


def print_table(rows: Sequence[Sequence[str]], first_side: str = "<") -> None:
    """Prints rows of text, aligned in columns.

    All columns but the first are aligned on the right. Columns for which the terminal is
    too narrow follow below, beside the first column again. An output that is no terminal
    has room for all.
    """
    width = shutil.get_terminal_size((sys.maxsize, 24)).columns
    first, *others = (
        _padded(column, ">" if i else first_side)
        for i, column in enumerate(zip(*rows, strict=True))
    )
    blocks = [[first]]
    for column in others:
        taken = sum(len(c[0]) + 2 for c in blocks[-1])
        if len(blocks[-1]) > 1 and taken + len(column[0]) > width:
            blocks.append([first])
        blocks[-1].append(column)
    tables = ("\n".join(map("  ".join, zip(*block, strict=True))) for block in blocks)
    print("\n\n".join(tables))


def _padded(texts: Sequence[str], side: str) -> list[str]:
    width = max(map(len, texts))
    return [f"{text:{side}{width}}" for text in texts]


def print_columns(columns: Mapping[str, Any], **formats: str) -> None:
    """Prints arrays as columns of a table. Numbers have four decimals, if `formats` does
    not say otherwise for the heading, and NaN is shown as nothing."""
    texts = []
    for name, values in columns.items():
        spec, numbers = formats.get(name, ".4f"), np.asarray(values, float)
        texts.append([name, *("" if np.isnan(v) else f"{v:{spec}}" for v in numbers)])
    print_table(list(zip(*texts, strict=True)), ">")
