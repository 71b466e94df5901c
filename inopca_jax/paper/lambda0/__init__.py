"""The figure `fig:lambda0`: the choice of the initial norm."""

from ..figure import PaperFigure
from . import claims, compute, draw

FIGURE = PaperFigure(
    name="lambda0",
    section="paper",
    description="""\
The choice of the initial norm lam0 at tau = 0.5.

Left: learning curves from q0 = 0.1. Points are the means of 20 trials of the exact chain at
p = 10,000, with bars of a third of their standard deviation. Lines are the ODEs, open
markers trials of the p-dimensional algorithm.

Right: the phase portrait of eq:Q_t and eq:lambda_t, with paths from q0 = 0.01 and the two
fixed points. The red path begins at lam0 = (1 + sqrt(1 + 2 tau))/2.
""",
    configs=compute.configs,
    compute=compute.compute,
    drawings={"lambda0": draw.draw},
    claims=claims.claims,
    work_order=5,
    quick=True,
)
