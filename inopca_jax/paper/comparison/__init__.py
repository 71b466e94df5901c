"""The figure `fig:comparison`: INO-PCA and Oja's method from a cold start."""

from ..figure import PaperFigure
from . import claims, compute, draw

FIGURE = PaperFigure(
    name="comparison",
    section="paper",
    description="""\
INO-PCA against Oja's method from a cold start, and limits for any algorithm.

INO-PCA has tau = 0.5 and lam0 = 0.5. Points are means over 20 trials of the exact chain at
p = 10,000, with bars of one-third standard deviation; lines and bands are the theory of the
same. Open markers are trials of the p-dimensional algorithm. The grey lines are not in the
paper: the best overlap that any gain reaches from this start, and that of offline PCA on
all samples so far.
""",
    configs=compute.configs,
    compute=compute.compute,
    drawings={"comparison": draw.draw},
    claims=claims.claims,
    work_order=3,
)
