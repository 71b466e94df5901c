"""Theory of the overlap and the norm: limits as p grows, fluctuations, bounds.

Densities of single entries are in `_densities`.
"""

from .bounds import best_lam0, offline_overlap, oracle_overlap
from .escape import escape_time, overlap_law
from .fluctuations import fluctuations
from .gain import best_overlap, effective_gain
from .law import EscapeTime, OverlapLaw
from .mean_field import mean_field
from .sensitivity import sensitivity
from .steady_state import critical_snr, steady_state

__all__ = [
    "EscapeTime",
    "OverlapLaw",
    "best_lam0",
    "best_overlap",
    "critical_snr",
    "effective_gain",
    "escape_time",
    "fluctuations",
    "mean_field",
    "offline_overlap",
    "oracle_overlap",
    "overlap_law",
    "sensitivity",
    "steady_state",
]
