"""The overlap and the norm of INO-PCA with the paper's defaults."""

import jax.random as jr

import inopca_jax as ino

from ..claim import Arrays
from ..learning_curves import TAU, P, compute_curves, paper_config

# As many points as in the figure error_bars, so that both use one compiled program for the
# predicted standard deviations.
T_MAX, POINTS = 30.0, 41
# Of the p-dimensional algorithm. At p = 500, some of the trials would change their sign.
REFERENCE_P, REFERENCE_TRIALS = 2_000, 100


def _config(p: int) -> ino.Config:
    return paper_config(ino.InoPCA(TAU), t_max=T_MAX, points=POINTS, p=p)


def configs(quick: bool = False) -> dict[str, ino.Config]:
    """Returns the paper's defaults."""
    return {"INO-PCA": _config(P)}


def compute(quick: bool = False) -> Arrays:
    """Returns theory with its standard deviations and trials; and, unless the run is quick,
    the same of the p-dimensional algorithm at a smaller p."""
    arrays = compute_curves(configs(quick), key=jr.key(3), error_bars=True)
    if not quick:
        arrays |= compute_curves(
            {"reference": _config(REFERENCE_P)},
            key=jr.key(103),
            trials=REFERENCE_TRIALS,
            engine=ino.Stream(),
            error_bars=True,
        )
    return arrays
