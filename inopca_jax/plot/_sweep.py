"""Sweeps: maps over two axes, curves over one."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from .._check import Checked, refuse
from .._order_parameters import critical_snr
from .._rule import Cubic, InoPCA, Krasulina, Oja
from ._style import COLOURS, MARKERS, style

RULES = {rule.__name__: rule for rule in (InoPCA, Oja, Krasulina, Cubic)}


def sweep(found: Any, variable: Checked[str] = "abs_q_mean") -> Figure:
    """The last value of a variable of `open_sweep`'s, over the first two axes of numbers,
    or over the first; a panel or a curve for each of the others.

    Over `rule.tau` and `model.omega` the line is where the theory's transition is.
    """
    if not all(hasattr(found, name) for name in ("data_vars", "dims", "attrs")):
        refuse("found", found, "pass the Dataset that sweep or open_sweep returns")
    if not isinstance(variable, str) or variable not in found:
        have = ", ".join(name for name in found.data_vars if name != "done")
        raise ValueError(f"variable = {variable!r} is not there: it has {have}.")
    last = found[variable].isel(time=-1)
    axes = [d for d in last.dims if np.issubdtype(found.get(d, last[d]).dtype, np.number)]
    axes = [d for d in axes if last.sizes[d] > 1]
    if not axes:
        raise ValueError("The sweep has no axis of numbers with more than one value.")
    over = axes[:2][::-1] if len(axes) > 1 else axes
    rest = [d for d in last.dims if d not in over]
    stacked = last.stack(panel=rest) if rest else last.expand_dims("panel")
    stacked = stacked.transpose("panel", *over)
    with style():
        if len(over) == 1:
            return _curves(stacked, over[0], rest, variable)
        return _maps(stacked, over, rest, variable, found.attrs["rule"])


def _title(panel: Any, rest: list[str]) -> str:
    values = [panel[d].item() for d in rest]
    shown = (str(v).split("(")[0] if isinstance(v, str) else f"{v:g}" for v in values)
    return ", ".join(f"{d} = {v}" for d, v in zip(rest, shown, strict=True))


def _curves(stacked: Any, over: str, rest: list[str], variable: str) -> Figure:
    figure, ax = plt.subplots(figsize=(4.6, 3.2))
    for i, panel in enumerate(stacked):
        look: dict[str, Any] = dict(color=COLOURS[i % 7], marker=MARKERS[i % 7])
        ax.plot(panel[over], panel, label=_title(panel, rest), **look)
    ax.set(xlabel=over, ylabel=f"{variable} at the last time")
    if rest:
        ax.legend()
    return figure


def _maps(
    stacked: Any, over: list[str], rest: list[str], variable: str, rule: str
) -> Figure:
    y, x = over
    count = stacked.sizes["panel"]
    shape = (0.6 + 3.4 * count, 3.2)
    figure, axes = plt.subplots(1, count, figsize=shape, squeeze=False, sharey=True)
    low, high = float(stacked.min()), float(stacked.max())
    drawn: Any = None
    for ax, panel in zip(axes[0], stacked, strict=True):
        # Cells that are not finished stay grey.
        ax.set_facecolor("0.85")
        drawn = ax.pcolormesh(
            panel[x], panel[y], panel, vmin=low, vmax=high, cmap="viridis", rasterized=True
        )
        own = panel["rule"].item() if "rule" in rest else rule
        _transition(ax, panel, x, y, RULES.get(own.split("(")[0]))
        ax.set(xlabel=x, title=_title(panel, rest) if rest else "")
        ax.grid(visible=False)
    axes[0, 0].set_ylabel(y)
    figure.colorbar(drawn, ax=list(axes[0]), label=f"{variable} at the last time")
    return figure


def _transition(ax: Any, panel: Any, x: str, y: str, rule: Any) -> None:
    """Below it nothing is learned, however long."""
    if {x, y} != {"rule.tau", "model.omega"} or rule is None:
        return
    first, *_, last = panel["rule.tau"].values
    taus = np.linspace(first, last, 100)
    omegas = np.array([float(critical_snr(rule(tau))) for tau in taus])
    line = (taus, omegas) if x == "rule.tau" else (omegas, taus)
    limits = ax.get_xlim(), ax.get_ylim()
    ax.plot(*line, color="white", linewidth=1.8, linestyle="--", label="transition")
    ax.set(xlim=limits[0], ylim=limits[1])
    # White on a map's bright end cannot be read.
    dark: dict[str, Any] = dict(frameon=True, facecolor="0.2", edgecolor="none")
    ax.legend(labelcolor="white", framealpha=0.8, **dark)
