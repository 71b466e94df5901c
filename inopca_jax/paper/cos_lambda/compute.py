"""The overlap and the norm of INO-PCA with the paper's defaults."""

import inopca_jax as ino

from ..figure import Arrays
from ..learning_curves import TAU, TRIALS, compute_curves, paper_config

# As many points as in the figure error_bars, so that both use one compiled program for the
# predicted standard deviations.
T_MAX, POINTS = 30.0, 41


def configs(quick: bool = False) -> dict[str, ino.Config]:
    """Returns the paper's defaults."""
    return {"INO-PCA": paper_config(ino.InoPCA(TAU), t_max=T_MAX, points=POINTS)}


def compute(quick: bool = False) -> Arrays:
    """Returns theory with its standard deviations at this p, trials and reference
    trials."""
    return compute_curves(
        configs(quick),
        trials=TRIALS,
        seed=3,
        reference_until=None if quick else {"INO-PCA": 4.5},
        error_bars=True,
    )
