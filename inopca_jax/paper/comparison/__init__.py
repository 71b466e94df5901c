"""INO-PCA against Oja's method from a cold start, and limits for any algorithm.

INO-PCA has tau = 0.5 and lam0 = 0.5. Lines are theory, which is of the mean of |q| at p =
10,000, and points the mean of 400 trials of the exact chain. Light bars are the 20 trials
that the paper shows, their mean and a third of their standard deviation: it is so large
that their mean may lie beside theory by chance. All algorithms see the same samples.

Black points are the p-dimensional algorithm INO-PCA at p = 500, the mean of 100 trials
with standard errors, and the black line is theory at this p: from a cold start, a smaller p
is learnt earlier. The grey lines are not in the paper: the best overlap that any gain
reaches from this start at p = 10,000, and that of offline PCA on all samples so far.
"""

from ..figure import PaperFigure
from . import claims, compute, draw

FIGURE = PaperFigure(
    name="comparison",
    section="paper",
    description=str(__doc__),
    configs=compute.configs,
    compute=compute.compute,
    drawings={"comparison": draw.draw},
    claims=claims.claims,
    work_order=3,
)
