"""Theory of the overlap and the norm: limits as p grows, fluctuations, bounds.

Densities of single entries are in `_densities`.
"""

from .bounds import best_lam0, offline_overlap, oracle_overlap
from .cold_start import ColdStartLaw, cold_start_law
from .escape import escape_time, overlap_law
from .fluctuations import fluctuations
from .forgetting import forgetting_eigenvalue, forgetting_overlap
from .gain import best_overlap, effective_gain
from .law import EscapeTime, OverlapLaw
from .mean_field import mean_field
from .predict import keeps_sign, predict
from .sensitivity import sensitivity
from .steady_state import best_rate, critical_snr, steady_distance, steady_state
from .velocity import velocity

__all__ = [
    "ColdStartLaw",
    "EscapeTime",
    "OverlapLaw",
    "best_lam0",
    "best_overlap",
    "best_rate",
    "cold_start_law",
    "critical_snr",
    "effective_gain",
    "escape_time",
    "fluctuations",
    "forgetting_eigenvalue",
    "forgetting_overlap",
    "keeps_sign",
    "mean_field",
    "offline_overlap",
    "oracle_overlap",
    "overlap_law",
    "predict",
    "sensitivity",
    "steady_distance",
    "steady_state",
    "velocity",
]
