"""Densities of theory, drawn over histograms."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from .._check import Checked, reals_on_host, refuse, require_flag, require_instance
from .._densities.density import Density, nearest_index
from .._densities.histogram import Histogram
from ._style import COLOURS, Drawn, Panels, panels, style


def density(
    theory: Checked[Density],
    empirical: Checked[Histogram | None] = None,
    *,
    times: Checked[Sequence[float] | None] = None,
    given: Checked[Sequence[float] | None] = None,
    rescaled: Checked[bool | None] = None,
    ax: Checked[Panels] = None,
) -> Drawn:
    """Draws densities over histograms, one column of panels for each time.

    Error bars are one standard error.

    **Arguments:**

    - `theory`: the density, as `density` or `steady_density` returns it.
    - `empirical`: a histogram of simulations, as `empirical_density` returns it.
    - `times`: the times to draw; by default all of `theory`.
    - `given`: entries of the spike. There is one row of panels for each, with the density
        conditional on it and the histogram's group that contains it; unless the spike's
        entries are point masses, narrower groups agree better. By default one row shows the
        marginal density.
    - `rescaled`: whether to draw the density of `x/lam`, as the paper does, or of `x`; by
        default as the histogram, or of `x/lam`.
    - `ax`: matplotlib axes to draw on, in an array of shape (rows, times); by default a new
        figure.

    **Returns:**

    `ax`, or the new matplotlib `Figure`.

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> from inopca_jax import plot
    >>> config = ino.Config(model=ino.SpikedModel(p=100), ts=[0.0, 1.0, 2.0])
    >>> figure = plot.density(ino.density(config), times=[0.0, 2.0])
    >>> [ax.get_title() for ax in figure.axes]
    ['$t = 0$', '$t = 2$']
    ```
    """
    require_instance("theory", theory, Density)
    if empirical is not None:
        require_instance("empirical", empirical, Histogram)
    if rescaled is not None:
        rescaled = require_flag("rescaled", rescaled)
    else:
        rescaled = empirical is None or empirical.rescaled
    if empirical is not None and empirical.rescaled != rescaled:
        raise ValueError(
            f"rescaled = {rescaled} is not allowed with a histogram of rescaled = "
            f"{empirical.rescaled}: pass the same, or leave it out."
        )
    chosen = np.asarray(theory.ts) if times is None else _numbers("times", times)
    rows = [None] if given is None else _numbers("given", given).tolist()
    columns = [theory.at(float(t)) for t in chosen]
    columns = [pdf.rescaled() if rescaled else pdf for pdf in columns]
    with style():
        shape = (len(rows), len(columns))
        size = (2.7 * len(columns) + 0.4, 2.3 * len(rows) + 0.3)
        drawn, axes = panels(ax, *shape, size, sharex=True, sharey="row")
        visible = _visible_range(columns, rows)
        for column, pdf in enumerate(columns):
            axes[0, column].set_title(f"$t = {float(pdf.ts[0]):.4g}$")
            axes[-1, column].set_xlabel(r"$x/\lambda_t$" if rescaled else "$x$")
            for row, xi in enumerate(rows):
                panel = axes[row, column]
                if empirical is not None:
                    _draw_histogram(panel, empirical, float(pdf.ts[0]), xi)
                panel.plot(*_curve(pdf, xi), color=COLOURS[0], label="theory")
                panel.set_xlim(visible)
        for row, xi in enumerate(rows):
            given_xi = "" if xi is None else f"\\,|\\,\\xi = {xi:.3g}"
            axes[row, 0].set_ylabel(f"$P_t(x{given_xi})$")
        for panel in axes.flat:  # after all are drawn: it ends the choice of their limits
            panel.set_ylim(bottom=0)
        axes[0, 0].legend(loc="upper left")
    return drawn


def _numbers(name: str, value: Any) -> np.ndarray:
    """Returns a list of numbers as an array with one axis, not empty."""
    remedy = "pass a list of numbers"
    numbers = reals_on_host(name, value, remedy)
    if numbers.ndim != 1 or not numbers.size or np.isnan(numbers).any():
        refuse(name, value, remedy)
    return numbers


def _curve(density: Density, xi: float | None) -> tuple[np.ndarray, np.ndarray]:
    """Returns the points x and the density there, given an entry of the spike or marginal,
    of a density at one time."""
    pdf = density.marginal() if xi is None else density.conditional(xi)
    x = np.asarray(density.x)
    return (x[0] if x.ndim > 1 else x), np.asarray(pdf)[0]


def _draw_histogram(ax: Axes, empirical: Histogram, t: float, xi: float | None) -> None:
    i = nearest_index(empirical.ts, t)
    if np.isfinite(t) and not np.isclose(empirical.ts[i], t):
        raise ValueError(
            f"empirical has no time t = {t}: pass times out of {empirical.ts}."
        )
    if xi is None:
        pdf, error = empirical.marginal[i], empirical.marginal_error[i]
    else:
        low, high = empirical.groups.T
        matching = np.flatnonzero((low <= xi) & (xi < high))
        if not matching.size:
            raise ValueError(
                f"given = {xi} is in none of the histogram's groups: pass an entry that is."
            )
        pdf, error = empirical.pdf[i, matching[0]], empirical.error[i, matching[0]]
    edges, colour = empirical.edges[i], COLOURS[1]
    ax.stairs(pdf, edges, fill=True, color=colour, alpha=0.3, label="simulation")
    ax.errorbar(
        empirical.centres[i], pdf, yerr=error, fmt="none", color=colour, elinewidth=0.8
    )


def _visible_range(columns: Sequence[Density], rows: Sequence[float | None]) -> tuple:
    """Returns the range of x in which a density exceeds 1e-3 of its maximum."""
    ends = []
    for density in columns:
        for xi in rows:
            x, pdf = _curve(density, xi)
            visible = x[pdf > 1e-3 * pdf.max()]
            ends += [visible[0], visible[-1]]
    return min(ends), max(ends)
