"""The overlap and the norm of INO-PCA with the paper's defaults."""

import jax.random as jr

import inopca_jax as ino

from ..claim import Arrays
from ..learning_curves import TAU, compute_curves, paper_config, shortened, to_arrays

# As many points as in the figure error_bars, so that both use one compiled program for the
# predicted standard deviations.
T_MAX, POINTS = 30.0, 41
# The p-dimensional algorithm costs p times as much as the chain, so its trials are few and
# short.
REFERENCE_UNTIL, REFERENCE_TRIALS = 4.5, 2


def configs(quick: bool = False) -> dict[str, ino.Config]:
    """Returns the paper's defaults."""
    return {"INO-PCA": paper_config(ino.InoPCA(TAU), t_max=T_MAX, points=POINTS)}


def compute(quick: bool = False) -> Arrays:
    """Returns theory with its standard deviations at this p, trials and reference
    trials."""
    arrays = compute_curves(configs(quick), key=jr.key(3), error_bars=True)
    if not quick:
        reference = ino.simulate(
            shortened(configs()["INO-PCA"], REFERENCE_UNTIL),
            key=jr.key(103),
            trials=REFERENCE_TRIALS,
            engine=ino.Stream(),
        )
        arrays |= to_arrays("INO-PCA/reference", reference)
    return arrays
