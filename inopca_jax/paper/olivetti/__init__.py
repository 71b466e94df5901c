"""`fig:olivetti`: several components of a stream of faces.

python -m inopca_jax.paper.olivetti [--faces olivettifaces.mat] [--out results] [--quick]

The paper tells neither how many components nor how the images were prepared, and both
matter: so here are all of them. Rates and the amnesic parameter are chosen, as there, by
the distance after 4,000 samples, on other streams than those that are shown.
"""

from .claims import claims
from .compute import compute, prepared
from .draw import draw, draw_components

__all__ = ["claims", "compute", "draw", "draw_components", "prepared"]
