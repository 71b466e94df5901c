"""The choice of the initial norm lam0 at tau = 0.5.

Left: learning curves from q0 = 0.1. Lines are the ODEs, and points the mean of |q| over 400
trials of the exact chain at p = 10,000. Light bars are the 20 trials that the paper shows,
their mean and a third of their standard deviation. All see the same samples. From lam0 =
0.05 the overlap first falls to a few times the size of the noise, 1/sqrt(p) = 0.01, so at
this p the mean is not quite that of the limit.

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
