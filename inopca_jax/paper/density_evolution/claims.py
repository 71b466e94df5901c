"""What the paper says about the densities of Example 1."""

from ..claim import Claim
from ..densities import match_claim, moments_claim
from ..figure import Arrays


def claims(arrays: Arrays) -> list[Claim]:
    """Returns the checked claims."""
    statement = "the theoretical densities closely match the empirical distributions"
    match = match_claim(arrays, "fig:density_evolution", statement)
    return [match, moments_claim(arrays)]
