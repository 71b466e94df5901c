"""The density of the entries of x_t over lam_t, Example 2.

The same as for Example 1, with a spike whose entries have a mean that is not zero: Exp(1) +
0.9, rescaled to unit second moment. The paper gives neither the rate of the exponential law
nor the normalisation.
"""

from ..densities import draw_densities
from ..figure import PaperFigure
from . import claims, compute

FIGURE = PaperFigure(
    name="density_evolution2",
    section="paper",
    description=str(__doc__),
    configs=compute.configs,
    compute=compute.compute,
    drawings={"density_evolution2": draw_densities},
    claims=claims.claims,
    work_order=12,
)
