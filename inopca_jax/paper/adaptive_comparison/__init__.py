"""The figure `fig:adaptive_comparison`: adaptive algorithms and a spike that changes."""

from ..figure import PaperFigure
from . import claims, compute, draw

FIGURE = PaperFigure(
    name="adaptive_comparison",
    section="paper",
    description="""\
Adaptive INO-PCA, AdaOja and CCIPCA when the spike changes at t = 50.

All begin with a cold start. The spike is that of Example 1 until t = 50, then the sparse
one of Example 3. The amnesic parameter of CCIPCA is 4. Points are means over 20 trials of
the exact chain at p = 10,000, with bars of one-third standard deviation; lines and bands
are the theory of the same. Open markers are trials of the p-dimensional algorithm. The grey
line is not in the paper: INO-PCA at the constant rate tau = 0.5, which needs no information
about the change.
""",
    configs=compute.configs,
    compute=compute.compute,
    drawings={"adaptive_comparison": draw.draw},
    claims=claims.claims,
    work_order=0,
)
