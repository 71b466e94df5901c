"""INO-PCA as recursive least squares with forgetting.

Left: the Grassmann distance of two components from two spikes, for INO-PCA and for two
algorithms of subspace tracking, PAST and PETRELS, with the forgetting factor 1 - tau/p at
tau = 0.5. Lines are matrix ODEs, points means of 512 trials of the exact chain of PAST at
p = 1,000, with standard errors. Right: how far the overlap of one component is from that of
INO-PCA, by tau: at most along the path, in proportion to tau, and at rest, where PAST has
the same overlap and PETRELS differs in proportion to tau^2.
"""

from ..figure import PaperFigure
from . import claims, compute, draw

FIGURE = PaperFigure(
    name="past",
    section="beyond",
    description=str(__doc__),
    configs=compute.configs,
    compute=compute.compute,
    drawings={"past": draw.draw},
    claims=claims.claims,
    work_order=16,
)
