"""The densities of Example 2, a spike with shifted exponential entries."""

import inopca_jax as ino

from ..claim import Arrays
from ..densities import compute_densities, example_configs


def configs(quick: bool = False) -> dict[str, ino.Config]:
    """Returns INO-PCA with the paper's defaults and Example 2's spike."""
    return example_configs(ino.ShiftedExponential(rate=1.0, shift=0.9))


def compute(quick: bool = False) -> Arrays:
    """Returns the densities, the trials' histograms and the moments of both."""
    return compute_densities(configs(quick)["INO-PCA"], quick, seed=2)
