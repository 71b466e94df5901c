"""One step of a rule, expanded in 1/p: what every theory, and `Diffusion`, is made of."""

from .begin import Cloud, change, first_kick, start, start_moments
from .kick import Noise, Slow, drift, noise_of, root
from .limit import COARSE, FINE, Limit, Nodes, limit, velocity

__all__ = [
    "COARSE",
    "FINE",
    "Cloud",
    "Limit",
    "Nodes",
    "Noise",
    "Slow",
    "change",
    "drift",
    "first_kick",
    "limit",
    "noise_of",
    "root",
    "start",
    "start_moments",
    "velocity",
]
