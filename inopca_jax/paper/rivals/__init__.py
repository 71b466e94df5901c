"""Theory of AdaOja and CCIPCA beside INO-PCA, Oja's method and the oracle.

Left, the algorithms with a regular limit, from q0 = 0.1. CCIPCA counts from t0 = 2 and
AdaOja from b0 = p, so that they remember the start. Lines are the mean field, points are
means over 20 trials of the exact chain with bars of one standard deviation. Right, AdaOja
and CCIPCA as published, whose first samples outweigh the start. Their overlap then depends
on chance and has either sign: lines are the theory's mean of |q| over runs, and bars are
one-third standard deviation. The grey line is the overlap of offline PCA on all samples so
far.
"""

from ..figure import PaperFigure
from . import claims, compute, draw

FIGURE = PaperFigure(
    name="rivals",
    section="beyond",
    description=str(__doc__),
    configs=compute.configs,
    compute=compute.compute,
    drawings={"rivals": draw.draw},
    claims=claims.claims,
    work_order=1,
)
