"""INO-PCA at fixed learning rates, and at the rate eq:optimal_nu_t.

From a cold start with lam0 = 1. Lines are theory, which is of the mean of |q| at p =
10,000, and points the mean of 400 trials of the exact chain. Light bars are the 20 trials
that the paper shows, their mean and a third of their standard deviation: it is so large
that their mean may lie beside theory by chance. All rates see the same samples.

Black points are the p-dimensional algorithm with tau = 1 at p = 500, the mean of 100
trials with standard errors, and the black line is theory at this p: from a cold start, a
smaller p is learnt earlier.
"""

from ..figure import PaperFigure
from . import claims, compute, draw

FIGURE = PaperFigure(
    name="tau",
    section="paper",
    description=str(__doc__),
    configs=compute.configs,
    compute=compute.compute,
    drawings={"tau": draw.draw},
    claims=claims.claims,
    work_order=2,
)
