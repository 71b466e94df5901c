"""Learning rates tuned by gradients of the mean field, against the best of all gains.

INO-PCA from q0 = 0.1, tuned for the overlap at t = 20: the paper's tau = 0.5, the best
constant rate, the best constant rate and initial norm, and the best schedule of 32 knots.
Left, the overlap, with 20 trials of the exact chain at p = 10,000. Right, the gain nu =
tau/lam. The dotted line is the oracle of eq:optimal_nu_t, the dashed line the overlap of
offline PCA.
"""

from ..figure import PaperFigure
from . import claims, compute, draw

FIGURE = PaperFigure(
    name="tuned",
    section="beyond",
    description=str(__doc__),
    configs=compute.configs,
    compute=compute.compute,
    drawings={"tuned": draw.draw},
    claims=claims.claims,
    work_order=4,
)
