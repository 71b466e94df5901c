"""The overlap Q_t and the norm lam_t of INO-PCA, Example 1.

Lines are the ODEs eq:Q_t and eq:lambda_t. Points are the mean of 20 trials of the exact
chain at p = 10,000 with one standard deviation; the band is the standard deviation that
theory predicts for this p. Black points are the mean of 100 trials of the p-dimensional
algorithm at p = 2,000, with standard errors, and black lines the mean that theory predicts
for that p.
"""

from ..figure import PaperFigure
from . import claims, compute, draw

FIGURE = PaperFigure(
    name="cos_lambda",
    section="paper",
    description=str(__doc__),
    configs=compute.configs,
    compute=compute.compute,
    drawings={"cos_lambda": draw.draw},
    claims=claims.claims,
    work_order=6,
    quick=True,
)
