"""The choice of the initial norm lam0 at tau = 0.5.

Left: learning curves from q0 = 0.1. Lines are the ODEs, and points the mean of 400 trials
of the exact chain at p = 10,000. Light bars are the 20 trials that the paper shows, their
mean and a third of their standard deviation. Black points are the p-dimensional algorithm
with lam0 = 0.5 at p = 500, the mean of 100 trials with standard errors, and the black line
is theory of |q| at this p. All see the same samples.

Right: the phase portrait of eq:Q_t and eq:lambda_t, with paths from q0 = 0.01 and the two
fixed points. The red path begins at lam0 = (1 + sqrt(1 + 2 tau))/2.
"""

from ..figure import PaperFigure
from . import claims, compute, draw

FIGURE = PaperFigure(
    name="lambda0",
    section="paper",
    description=str(__doc__),
    configs=compute.configs,
    compute=compute.compute,
    drawings={"lambda0": draw.draw},
    claims=claims.claims,
    work_order=5,
    quick=True,
)
