"""The densities of Example 1, a spike with uniform entries."""

import inopca_jax as ino

from ..claim import Arrays
from ..densities import compute_densities, example_configs


def configs(quick: bool = False) -> dict[str, ino.Config]:
    """Returns INO-PCA with the paper's defaults."""
    return example_configs(ino.Uniform())


def compute(quick: bool = False) -> Arrays:
    """Returns the densities, the trials' histograms and the moments of both."""
    return compute_densities(configs(quick)["INO-PCA"], quick, seed=1)
