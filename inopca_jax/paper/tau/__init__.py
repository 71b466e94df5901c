"""The figure `fig:tau`: fixed and adaptive learning rates."""

from ..figure import PaperFigure
from . import claims, compute, draw

FIGURE = PaperFigure(
    name="tau",
    section="paper",
    description="""\
INO-PCA at fixed learning rates, and at the rate eq:optimal_nu_t.

From a cold start with lam0 = 1. Points are the means of 20 trials of the exact chain at p =
10,000, with bars of a third of their standard deviation. Lines and bands are the theory of
these means and deviations. Open markers are trials of the p-dimensional algorithm.
""",
    configs=compute.configs,
    compute=compute.compute,
    drawings={"tau": draw.draw},
    claims=claims.claims,
    work_order=2,
)
