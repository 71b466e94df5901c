from .bounds import best_lam0, offline_overlap, oracle_overlap
from .mean_field import mean_field
from .steady import critical_snr, steady_state

__all__ = [
    "best_lam0",
    "critical_snr",
    "mean_field",
    "offline_overlap",
    "oracle_overlap",
    "steady_state",
]
