"""The phase diagram over the learning rate and the signal-to-noise ratio.

Colour is |q| of the exact chain at p = 2,000 and t = 40 from q0 = 0.5, the mean of a few
trials. The dashed line is the transition omega_c(tau), below which nothing is learnt in
theory; thin lines are contours of the steady overlap at 0.5, 0.8 and 0.9.
"""

from ..figure import PaperFigure
from . import claims, compute, draw

FIGURE = PaperFigure(
    name="phase_diagram",
    section="beyond",
    description=str(__doc__),
    configs=compute.configs,
    compute=compute.compute,
    drawings={"phase_diagram": draw.draw},
    claims=claims.claims,
    work_order=11,
)
