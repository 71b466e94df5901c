"""Adaptive INO-PCA, AdaOja and CCIPCA when the spike changes at t = 50.

All begin with a cold start. The spike is that of Example 1 until t = 50, then the sparse
one of Example 3. The amnesic parameter of CCIPCA is 4. Lines are theory, which is of the
mean of |q| at p = 10,000, and points the mean of 400 trials of the exact chain. Light bars
are the 20 trials that the paper shows, their mean and a third of their standard deviation:
it is so large that their mean may lie beside theory by chance. All algorithms see the same
samples.

Black points are the p-dimensional algorithm AdaOja at p = 500, the mean of 100 trials with
standard errors, and the black line is theory at this p. The grey line is not in the paper:
INO-PCA at the constant rate tau = 0.5, which needs no information about the change.
"""

from ..figure import PaperFigure
from . import claims, compute, draw

FIGURE = PaperFigure(
    name="adaptive_comparison",
    section="paper",
    description=str(__doc__),
    configs=compute.configs,
    compute=compute.compute,
    drawings={"adaptive_comparison": draw.draw},
    claims=claims.claims,
    work_order=0,
)
