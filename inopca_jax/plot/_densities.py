"""Densities over histograms."""

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .._check import Checked, reals_on_host, refuse, require_flag, require_instance
from .._densities.density import Density, nearest
from .._densities.histogram import Histogram
from ._style import COLOURS, style


def density(
    theory: Checked[Density],
    empirical: Checked[Histogram | None] = None,
    *,
    times: Checked[Sequence[float] | None] = None,
    given: Checked[Sequence[float] | None] = None,
    rescaled: Checked[bool | None] = None,
) -> Figure:
    """Panels of theory over histogram, one column a time.

    One row, of marginals; or, with `given`, a row for each of these entries of the spike,
    beside the histogram's group that holds it (of a law that is not of point masses, the
    narrower the group the closer). `rescaled` shows `x/lam`, as the paper does, by default
    if the histogram was counted so. Bars are one standard error.
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
            f"rescaled = {rescaled} is not allowed: the histogram was counted with "
            f"rescaled = {empirical.rescaled}."
        )
    chosen = np.asarray(theory.ts) if times is None else _numbers("times", times)
    rows = [None] if given is None else _numbers("given", given).tolist()
    moments = [theory.at(float(t)) for t in chosen]
    moments = [now.rescaled() if rescaled else now for now in moments]
    with style():
        figure, axes = plt.subplots(
            len(rows),
            len(moments),
            figsize=(2.7 * len(moments) + 0.4, 2.3 * len(rows) + 0.3),
            sharex=True,
            sharey="row",
            squeeze=False,
        )
        for column, now in enumerate(moments):
            axes[0, column].set_title(f"$t = {float(now.ts[0]):.4g}$")
            axes[-1, column].set_xlabel(r"$x/\lambda_t$" if rescaled else "$x$")
            for row, xi in enumerate(rows):
                ax = axes[row, column]
                if empirical is not None:
                    _histogram(ax, empirical, float(now.ts[0]), xi)
                _density_curve(ax, now, xi)
        for row, xi in enumerate(rows):
            given_xi = "" if xi is None else f"\\,|\\,\\xi = {xi:.3g}"
            axes[row, 0].set_ylabel(f"$P_t(x{given_xi})$")
            axes[row, 0].set_ylim(bottom=0)
        axes[0, 0].set_xlim(_span_of(moments, rows))
        axes[0, 0].legend(loc="upper left")
    return figure


def _numbers(name: str, value: Any) -> np.ndarray:
    """Numbers in one axis, at least one."""
    remedy = "pass a list of numbers"
    found = reals_on_host(name, value, remedy)
    if found.ndim != 1 or not found.size or np.isnan(found).any():
        refuse(name, value, remedy)
    return found


def _curve_of(now: Density, xi: float | None) -> tuple[np.ndarray, np.ndarray]:
    pdf = now.marginal() if xi is None else now.conditional(xi)
    x = np.asarray(now.x)
    return (x[0] if x.ndim > 1 else x), np.asarray(pdf)[0]


def _density_curve(ax: Axes, now: Density, xi: float | None) -> None:
    ax.plot(*_curve_of(now, xi), color=COLOURS[0], label="theory")


def _histogram(ax: Axes, empirical: Histogram, t: float, xi: float | None) -> None:
    i = nearest(empirical.ts, t)
    if np.isfinite(t) and not np.isclose(empirical.ts[i], t):
        raise ValueError(f"empirical has no time t = {t}: its times are {empirical.ts}.")
    if xi is None:
        pdf, error = empirical.marginal[i], empirical.marginal_error[i]
    else:
        low, high = empirical.groups.T
        holds = np.flatnonzero((low <= xi) & (xi < high))
        if not holds.size:
            raise ValueError(f"given = {xi} is in none of the histogram's groups.")
        pdf, error = empirical.pdf[i, holds[0]], empirical.error[i, holds[0]]
    edges, colour = empirical.edges[i], COLOURS[1]
    ax.stairs(pdf, edges, fill=True, color=colour, alpha=0.3, label="simulation")
    ax.errorbar(
        empirical.centres[i], pdf, yerr=error, fmt="none", color=colour, elinewidth=0.8
    )


def _span_of(moments: Sequence[Density], rows: Sequence[float | None]) -> tuple:
    """Where there is anything to see."""
    ends = []
    for now in moments:
        for xi in rows:
            x, pdf = _curve_of(now, xi)
            seen = x[pdf > 1e-3 * pdf.max()]
            ends += [seen[0], seen[-1]]
    return min(ends), max(ends)
