"""Figures of sweeps: maps over two axes, curves over one."""

from typing import Any

import numpy as np

from .._check import Checked, refuse
from .._order_parameters import critical_snr
from .._rule import Cubic, InoPCA, Krasulina, Oja
from ._style import COLOURS, MARKERS, Drawn, Panels, panels, style

_RULES = {rule.__name__: rule for rule in (InoPCA, Oja, Krasulina, Cubic)}


def sweep(
    dataset: Any, variable: Checked[str | None] = None, *, ax: Checked[Panels] = None
) -> Drawn:
    """Draws a variable of a sweep at the last time.

    It is a map over the first two axes of numbers, with a panel for each value of the other
    axes; or curves over the axis of numbers if there is only one. Spikes and components
    count as other axes. Maps over `rule.tau` and
    `model.omega` show the transition (`critical_snr`) as a line, below which the overlap
    stays 0, unless spikes turn or entries are missing.

    **Arguments:**

    - `dataset`: the `xarray.Dataset` that `sweep` or `open_sweep` returns.
    - `variable`: the name of a variable in it, by default `"abs_q_mean"`, or
        `"grassmann_distance_mean"` if there are several spikes or components.
    - `ax`: matplotlib axes to draw on, one for each map; by default a new figure.

    **Returns:**

    `ax`, or the new matplotlib `Figure`.

    **Example:**

    ```pycon
    >>> import jax.random as jr
    >>> import inopca_jax as ino
    >>> from inopca_jax import plot
    >>> config = ino.Config(model=ino.SpikedModel(p=100), ts=[0.0, 1.0, 2.0])
    >>> dataset = ino.sweep(config, {"rule.tau": [0.2, 0.5]}, key=jr.key(0), trials=4)
    >>> figure = plot.sweep(dataset)
    >>> figure.axes[0].get_xlabel()
    'rule.tau'
    ```
    """
    if not all(hasattr(dataset, name) for name in ("data_vars", "dims", "attrs")):
        refuse("dataset", dataset, "pass the Dataset that sweep or open_sweep returns")
    if variable is None:
        is_single = "abs_q_mean" in dataset
        variable = "abs_q_mean" if is_single else "grassmann_distance_mean"
    if not isinstance(variable, str) or variable not in dataset:
        names = ", ".join(name for name in dataset.data_vars if name != "done")
        raise ValueError(
            f"variable = {variable!r} is not in the dataset: pass one of {names}."
        )
    last = dataset[variable].isel(time=-1)
    is_number = lambda d: np.issubdtype(dataset.get(d, last[d]).dtype, np.number)
    of_vectors = ("spike", "component", "other_component")
    axes = [
        d for d in last.dims if d not in of_vectors and is_number(d) and last.sizes[d] > 1
    ]
    if not axes:
        raise ValueError(
            "dataset has no axis of numbers with more than one value: pass one that has."
        )
    over = axes[:2][::-1] if len(axes) > 1 else axes
    rest = [d for d in last.dims if d not in over]
    stacked = last.stack(panel=rest) if rest else last.expand_dims("panel")
    stacked = stacked.transpose("panel", *over)
    with style():
        if len(over) == 1:
            drawn, ((panel,),) = panels(ax, 1, 1, (4.6, 3.2))
            _curves(panel, stacked, over[0], rest, variable)
        else:
            count = stacked.sizes["panel"]
            drawn, axes = panels(ax, 1, count, (0.6 + 3.4 * count, 3.2), sharey=True)
            rule, plain = dataset.attrs["rule"], dataset.attrs.get("is_plain_model", 1)
            _maps(axes[0], stacked, over, rest, variable, rule if plain else None)
    return drawn


def _title(panel: Any, rest: list[str]) -> str:
    """Returns the values of a panel on the axes `rest`."""
    values = [panel[d].item() for d in rest]
    shown = (str(v).split("(")[0] if isinstance(v, str) else f"{v:g}" for v in values)
    return ", ".join(f"{d} = {v}" for d, v in zip(rest, shown, strict=True))


def _curves(ax: Any, stacked: Any, over: str, rest: list[str], variable: str) -> None:
    for i, panel in enumerate(stacked):
        marks: dict[str, Any] = dict(color=COLOURS[i % 7], marker=MARKERS[i % 7])
        ax.plot(panel[over], panel, label=_title(panel, rest), **marks)
    ax.set(xlabel=over, ylabel=f"{variable} at the last time")
    if rest:
        ax.legend()


def _maps(
    axes: Any,
    stacked: Any,
    over: list[str],
    rest: list[str],
    variable: str,
    rule: str | None,
) -> None:
    y, x = over
    low, high = float(stacked.min()), float(stacked.max())
    mesh: Any = None
    for ax, panel in zip(axes, stacked, strict=True):
        # Cells that are not finished stay grey.
        ax.set_facecolor("0.85")
        mesh = ax.pcolormesh(
            panel[x], panel[y], panel, vmin=low, vmax=high, cmap="viridis", rasterized=True
        )
        if rule is not None:
            rule_name = panel["rule"].item() if "rule" in rest else rule
            _draw_transition(ax, panel, x, y, _RULES.get(rule_name.split("(")[0]))
        ax.set(xlabel=x, title=_title(panel, rest) if rest else "")
        ax.grid(visible=False)
    axes[0].set_ylabel(y)
    axes[0].figure.colorbar(mesh, ax=list(axes), label=f"{variable} at the last time")


def _draw_transition(ax: Any, panel: Any, x: str, y: str, rule: Any) -> None:
    """Draws the critical signal-to-noise ratio, if the map is over `omega` and `tau`."""
    if {x, y} != {"rule.tau", "model.omega"} or rule is None:
        return
    first, *_, last = panel["rule.tau"].values
    taus = np.linspace(first, last, 100)
    omegas = np.array([float(critical_snr(rule(tau))) for tau in taus])
    line = (taus, omegas) if x == "rule.tau" else (omegas, taus)
    limits = ax.get_xlim(), ax.get_ylim()
    ax.plot(*line, color="white", linewidth=1.8, linestyle="--", label="transition")
    ax.set(xlim=limits[0], ylim=limits[1])
    # A dark box, as white on the bright end of the colour map cannot be read.
    box: dict[str, Any] = dict(frameon=True, facecolor="0.2", edgecolor="none")
    ax.legend(labelcolor="white", framealpha=0.8, **box)
