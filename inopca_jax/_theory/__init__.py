from .bounds import best_lam0, offline_overlap, oracle_overlap
from .closed_form import ClosedForm
from .density import density, steady_density
from .escape import escape_time, overlap_law
from .fluctuations import fluctuations
from .fokker_planck import FokkerPlanck
from .gain import best_overlap, effective_gain
from .mean_field import mean_field
from .method_of_lines import MethodOfLines
from .overlap import EscapeTime, OverlapLaw
from .sensitivity import sensitivity
from .solver import AbstractDensitySolver
from .steady import critical_snr, steady_state

__all__ = [
    "AbstractDensitySolver",
    "ClosedForm",
    "EscapeTime",
    "FokkerPlanck",
    "MethodOfLines",
    "OverlapLaw",
    "best_lam0",
    "best_overlap",
    "critical_snr",
    "density",
    "effective_gain",
    "escape_time",
    "fluctuations",
    "mean_field",
    "offline_overlap",
    "oracle_overlap",
    "overlap_law",
    "sensitivity",
    "steady_density",
    "steady_state",
]
