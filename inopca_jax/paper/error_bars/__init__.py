"""Error bars predicted without Monte Carlo, and those of the exact chain.

Left: the mean of the overlap over trials with one standard deviation, and the predicted
bands. Middle and right: the standard deviations of the overlap and of INO-PCA's norm,
predicted (lines) and measured (points with standard errors). Top: q0 = 0.3 at p = 2,000.
Bottom: the paper's q0 = 0.1 at p = 10,000.
"""

from ..figure import PaperFigure
from . import claims, compute, draw

FIGURE = PaperFigure(
    name="error_bars",
    section="beyond",
    description=str(__doc__),
    configs=compute.configs,
    compute=compute.compute,
    drawings={"error_bars": draw.draw},
    claims=claims.claims,
    work_order=7,
)
