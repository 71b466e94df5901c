"""Figures: theory as lines, simulations as points with error bars, limits in grey.

The figures of the paper are in `inopca_jax.paper`.
"""

from ._curves import Curve, draw, learning_curves, offline_limit
from ._densities import density
from ._scree import scree
from ._style import COLOURS, MARKERS, save, style
from ._sweep import sweep
from ._tuning import sensitivities, tuning

__all__ = [
    "COLOURS",
    "MARKERS",
    "Curve",
    "density",
    "draw",
    "learning_curves",
    "offline_limit",
    "save",
    "scree",
    "sensitivities",
    "style",
    "sweep",
    "tuning",
]
