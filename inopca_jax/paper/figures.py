"""The figures, in the order of the report: the paper's, those beyond it, and what it says
without one."""

import importlib
from collections.abc import Callable
from types import ModuleType
from typing import Any

PAPER = (
    "density_evolution",
    "cos_lambda",
    "density_evolution2",
    "steady_state_dist",
    "tau",
    "lambda0",
    "comparison",
    "adaptive_comparison",
    "olivetti",
)
BEYOND = ("error_bars", "rivals", "convergence", "phase_diagram", "tuned")
WITHOUT = ("statements",)
FIGURES = (*PAPER, *BEYOND, *WITHOUT)
# Of each kind one, and of few algorithms: what takes the time is to compile them.
QUICK = ("density_evolution", "cos_lambda", "steady_state_dist", "lambda0")


def figure(name: str) -> ModuleType:
    """The module, with `configs`, `compute`, `claims`, and functions that draw."""
    return importlib.import_module(f"{__package__}.{name}")


def drawings_of(name: str) -> dict[str, Callable[..., Any]]:
    """What is drawn of it, by the names of the files: `draw`, and every `draw_part`."""
    functions = vars(figure(name)).items()
    return {
        name + key.removeprefix("draw"): function
        for key, function in functions
        if key == "draw" or key.startswith("draw_")
    }
