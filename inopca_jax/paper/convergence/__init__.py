"""How simulations converge to theory as p grows.

Left, the distance of the mean overlap of INO-PCA from the ODE at a fixed time. Right, the
standard deviations of the overlap and of the norm over trials. Points are from the exact
chain, with standard errors. Dashed lines are predictions of `fluctuations`, without a fit:
they fall as 1/p on the left and as 1/sqrt(p) on the right.
"""

from ..figure import PaperFigure
from . import claims, compute, draw

FIGURE = PaperFigure(
    name="convergence",
    section="beyond",
    description=str(__doc__),
    configs=compute.configs,
    compute=compute.compute,
    drawings={"convergence": draw.draw},
    claims=claims.claims,
    work_order=8,
)
