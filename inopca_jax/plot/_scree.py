"""Scree plots: the share of variance of each component."""

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
    """Draws each component's share of the total variance, and the cumulative share.

    **Arguments:**

    - `variance`: shape `(components,)`, the variances along the components.
    - `total`: the total variance of the data.

    **Returns:**

    A matplotlib `Figure`.
    """
    variances = reals_on_host("variance", variance, "pass the variances of the components")
    if variances.ndim != 1 or not variances.size:
        raise ValueError(
            f"variance of shape {variances.shape} is not allowed: pass an array of shape "
            "(components,)."
        )
    share = variances / plain_number("total", total, positive, "pass a positive variance")
    number = np.arange(1, share.size + 1)
    with style():
        figure, ax = plt.subplots(figsize=(4.2, 3.0))
        ax.bar(number, share, color=COLOURS[0], label="component")
        ax.plot(number, np.cumsum(share), color=COLOURS[1], marker="s", label="cumulative")
        ax.set(xlabel="component", ylabel="share of the variance")
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.set_ylim(0, 1.05 * max(1e-12, np.sum(share)))
        ax.grid(visible=False, axis="x")
        ax.legend(loc="center right")
    return figure
