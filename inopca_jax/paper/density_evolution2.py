"""The law of the entries of x_t over lam_t, Example 2 (an exponential spike plus 0.9).

The same as for Example 1, with entries of the spike whose mean is not zero, Exp(1) + 0.9
rescaled to unit second moment: the paper gives neither rate nor normalisation.
"""

import numpy as np
from matplotlib.figure import Figure

from .._config import Config
from .._model import ShiftedExponential
from . import densities
from .claim import Claim, verdict
from .curves import Arrays


def configs(quick: bool = False) -> dict[str, Config]:
    """INO-PCA with the paper's defaults, and Example 2's spike."""
    return {"INO-PCA": densities.example(ShiftedExponential(rate=1.0, shift=0.9))}


def compute(quick: bool = False) -> Arrays:
    """The densities, the trials' histograms and the moments of both."""
    return densities.followed(configs(quick)["INO-PCA"], quick, seed=2)


def draw(found: Arrays) -> Figure:
    """A panel a time."""
    return densities.panels(found)


def claims(found: Arrays) -> list[Claim]:
    """What the paper says of the figure."""
    says = "the theory accurately captures the overall evolution of the density"
    match = densities.match(found, "fig:density_evolution2", says)
    return [match, _shift(found), densities.moments(found)]


def _shift(found: Arrays) -> Claim:
    """Whether the mean moves as theory has it, and moves at all."""
    mean, error = found["means"].mean(axis=0), found["means"].std(axis=0, ddof=1)
    error = error / len(found["means"]) ** 0.5
    far = np.abs(mean - found["mean"]) / error
    moved = (mean[-1] - mean[0]) / np.hypot(error[-1], error[0])
    rows = zip(found["ts"], found["mean"], mean, error, strict=True)
    listed = "; ".join(f"t = {t:g}: {a:.4f}, {b:.4f} +- {e:.4f}" for t, a, b, e in rows)
    return Claim(
        "fig:density_evolution2",
        "the theory accurately captures the mean shift",
        float(mean[-1]),
        float(error[-1]),
        f"mean of x/lam, theory, then trials: {listed}; at most {far.max():.1f} standard "
        "errors off",
        verdict(bool(far.max() < densities.SURE < moved)),
        "holds",
        f"In theory it is q_t E[xi], here {found['mean'][-1] / found['q'][0, -1]:.3f} q_t; "
        f"within {densities.SURE:g} standard errors counts.",
    )
