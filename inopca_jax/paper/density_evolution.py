"""The law of the entries of x_t over lam_t, Example 1 (a uniform spike).

Lines are the marginal of the solution of the PDE eq:strong_pde at three times, over
histograms of snapshots of 20 trials of the exact chain at p = 10,000 with one standard
error; open circles in the first panel are the p-dimensional algorithm itself, the dashed
line is the density of the start.
"""

from matplotlib.figure import Figure

from .._config import Config
from .._model import Uniform
from . import densities
from .claim import Claim
from .curves import Arrays


def configs(quick: bool = False) -> dict[str, Config]:
    """INO-PCA with the paper's defaults."""
    return {"INO-PCA": densities.example(Uniform())}


def compute(quick: bool = False) -> Arrays:
    """The densities, the trials' histograms and the moments of both."""
    return densities.followed(configs(quick)["INO-PCA"], quick, seed=1)


def draw(found: Arrays) -> Figure:
    """A panel a time."""
    return densities.panels(found)


def claims(found: Arrays) -> list[Claim]:
    """What the paper says of the figure."""
    says = "the theoretical densities closely match the empirical distributions"
    return [densities.match(found, "fig:density_evolution", says), densities.moments(found)]
