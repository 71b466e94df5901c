"""How much each component explains."""

import matplotlib.pyplot as plt
import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from .._check import Checked, plain_number, positive, reals_on_host
from ._style import COLOURS, style


def scree(
    variance: Checked[Float[np.ndarray, " components"]], total: Checked[float]
) -> Figure:
    """The share of the total variance that each component explains, and all up to it."""
    known = reals_on_host("variance", variance, "pass the variances of the components")
    if known.ndim != 1 or not known.size:
        raise ValueError(
            f"variance of shape {known.shape} is not allowed: pass one axis of them."
        )
    share = known / plain_number("total", total, positive, "pass a positive variance")
    number = np.arange(1, share.size + 1)
    with style():
        figure, ax = plt.subplots(figsize=(4.2, 3.0))
        ax.bar(number, share, color=COLOURS[0], label="each")
        ax.plot(
            number, np.cumsum(share), color=COLOURS[1], marker="s", label="all up to it"
        )
        ax.set(xlabel="component", ylabel="share of the variance")
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.set_ylim(0, 1.05 * max(1e-12, np.sum(share)))
        ax.grid(visible=False, axis="x")
        ax.legend(loc="center right")
    return figure
