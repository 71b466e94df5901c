"""The steady state over the signal-to-noise ratio, and the transition.

Left: the steady density of an entry where the spike's entry is xi = 1/sqrt(0.05) (Example
3). Lines are eq:steady_state_dist, crosses the PDE at t = 200. Below the transition all
densities are the same.

Right: the steady overlap. Lines are the limit q_s. Points are the mean of |q| over 10
trials of the exact chain with one standard deviation, at p = 10,000 (quick: 2,000) and t =
100 from q0 = 0.3. Pale points are so close to a transition that the ODE has not yet
converged at that time. Below the transition |q| is not 0 but of order 1/sqrt(p). There are
no trials of the p-dimensional algorithm, which would take minutes.
"""

from ..figure import PaperFigure
from . import claims, compute, draw

FIGURE = PaperFigure(
    name="steady_state_dist",
    section="paper",
    description=str(__doc__),
    configs=compute.configs,
    compute=compute.compute,
    drawings={"steady_state_dist": draw.draw},
    claims=claims.claims,
    work_order=10,
    quick=True,
)
