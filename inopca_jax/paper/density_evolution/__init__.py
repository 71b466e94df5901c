"""The density of the entries of x_t over lam_t, Example 1.

INO-PCA with the paper's defaults, whose spike has uniform entries. Curves are the marginal
density from the PDE eq:strong_pde at three times, dashed curves that of the start.
Histograms are the entries of 20 trials of the exact chain at p = 10,000, with one standard
error; open circles at t = 1 are trials of the p-dimensional algorithm.
"""

from ..densities import draw_densities
from ..figure import PaperFigure
from . import claims, compute

FIGURE = PaperFigure(
    name="density_evolution",
    section="paper",
    description=str(__doc__),
    configs=compute.configs,
    compute=compute.compute,
    drawings={"density_evolution": draw_densities},
    claims=claims.claims,
    work_order=13,
    quick=True,
)
