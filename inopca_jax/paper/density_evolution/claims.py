"""What the paper says about the densities of Example 1."""

from ..claim import Claims
from ..densities import add_claims

claims = Claims()
_MATCH = "The theoretical densities closely match the empirical distributions."
add_claims(claims, "density_evolution", _MATCH)
