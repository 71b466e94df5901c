"""Scree plots: the share of variance of each component."""

import numpy as np
from jaxtyping import Float
from matplotlib.ticker import MaxNLocator

from .._check import Checked, plain_number, positive, reals_on_host
from ._style import COLOURS, Drawn, Panels, panels, style


def scree(
    variance: Checked[Float[np.ndarray, " components"]],
    total: Checked[float],
    *,
    ax: Checked[Panels] = None,
) -> Drawn:
    """Draws each component's share of the total variance, and the cumulative share.

    **Arguments:**

    - `variance`: shape `(components,)`, the variances along the components.
    - `total`: the total variance of the data.
    - `ax`: matplotlib axes to draw on; by default a new figure.

    **Returns:**

    `ax`, or the new matplotlib `Figure`.

    **Example:**

    ```pycon
    >>> from inopca_jax import plot
    >>> figure = plot.scree([3.0, 1.0], total=5.0)
    >>> [round(float(bar.get_height()), 2) for bar in figure.axes[0].patches]
    [0.6, 0.2]
    ```
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
        drawn, ((panel,),) = panels(ax, 1, 1, (4.2, 3.0))
        panel.bar(number, share, color=COLOURS[0], label="component")
        line = dict(color=COLOURS[1], marker="s", label="cumulative")
        panel.plot(number, np.cumsum(share), **line)
        panel.set(xlabel="component", ylabel="share of the variance")
        panel.xaxis.set_major_locator(MaxNLocator(integer=True))
        panel.set_ylim(0, 1.05 * max(1e-12, np.sum(share)))
        panel.grid(visible=False, axis="x")
        panel.legend(loc="center right")
    return drawn
