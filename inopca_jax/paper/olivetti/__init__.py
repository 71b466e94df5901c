"""Several components of a stream of faces.

The paper tells neither how many components nor how the images were prepared, and both
matter: so here are all of them. Rates and the amnesic parameter are chosen, as there, by
the distance after 4,000 samples, on other streams than those that are shown. Lines are
means, bands hold nine of ten streams. Below, the first components of one of them.
"""

from .claims import claims
from .compute import compute, configs, prepared
from .draw import draw, draw_components

__all__ = ["claims", "compute", "configs", "draw", "draw_components", "prepared"]
