"""The law of one entry of the estimate: from theory and from simulations.

The theory of the overlap and the norm is in `_order_parameters`.
"""

from .closed_form import ClosedForm
from .density import Density
from .fokker_planck import FokkerPlanck
from .histogram import Histogram, empirical_density
from .method_of_lines import MethodOfLines
from .solve import density, overlap_path, steady_density
from .solver import AbstractDensitySolver
from .steady import SteadyBranches, steady_branches

__all__ = [
    "AbstractDensitySolver",
    "ClosedForm",
    "Density",
    "FokkerPlanck",
    "Histogram",
    "MethodOfLines",
    "SteadyBranches",
    "density",
    "empirical_density",
    "overlap_path",
    "steady_branches",
    "steady_density",
]
