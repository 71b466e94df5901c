"""What a figure of the report consists of."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import matplotlib.figure

import inopca_jax as ino

from .claim import Arrays, Claim
from .labels import in_words


@dataclass(frozen=True)
class PaperFigure:
    """A figure of the report: its numbers, its drawings and the claims about it.

    - `name`: the name of its files, and the value of `--figure`. For a figure of the paper
      it is the paper's label without `fig:`.
    - `section`: whether it is a figure of the paper, one beyond the paper, or a collection
      of statements that the paper makes without a figure.
    - `description`: its title, a blank line, and the caption in the report. It may contain
      the paper's LaTeX labels and names of symbols, which are replaced (`in_words`).
    - `configs`: the configs that it is computed for, by name. Its argument, and that of
      `compute`, is whether the run is quick.
    - `compute`: all numbers that drawings and claims need.
    - `drawings`: functions from these numbers to a Matplotlib figure, by the name of the
      file, without its ending.
    - `claims`: the claims about the figure, checked against these numbers.
    - `work_order`: the place in the order of the work. Figures that share compiled programs
      should be neighbours, because one process then makes both.
    - `quick`: whether a quick run includes it.
    """

    name: str
    section: Literal["paper", "beyond", "statements"]
    description: str
    configs: Callable[[bool], dict[str, ino.Config]]
    compute: Callable[[bool], Arrays]
    drawings: Mapping[str, Callable[[Arrays], matplotlib.figure.Figure]]
    claims: Callable[[Arrays], list[Claim]]
    work_order: int
    quick: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "description", in_words(self.description))

    @property
    def label(self) -> str:
        """The figure's name as the report prints it."""
        if self.section == "paper":
            return in_words(f"fig:{self.name}")
        return self.name.replace("_", " ")
