"""Three components among three spikes: chain, p-dimensional algorithm and matrix ODE.

Algorithm 1 with INO-PCA, tau = 0.5, on spikes with omega = 4, 2 and 1, from q0 = 0.2. Left,
the overlap of each component with its own spike; middle, the norms; right, the Grassmann
distance of the three components from the three spikes. Lines are the matrix ODE, the limit
of large p; filled points the exact chain and open points the p-dimensional algorithm, both
at p = 400, with standard errors. Dotted lines are the steady state by the closed forms for
one spike; the dashed ones are offline PCA on all samples so far.
"""

from ..figure import PaperFigure
from . import claims, compute, draw

FIGURE = PaperFigure(
    name="components",
    section="beyond",
    description=str(__doc__),
    configs=compute.configs,
    compute=compute.compute,
    drawings={"components": draw.draw},
    claims=claims.claims,
    work_order=15,
)
