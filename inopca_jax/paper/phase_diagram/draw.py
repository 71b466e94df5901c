"""The drawing of the phase diagram."""

from typing import Any

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from inopca_jax.plot import style

from ..claim import Arrays
from .compute import RULES, T_MAX

CONTOURS = (0.5, 0.8, 0.9)


def draw(arrays: Arrays) -> Figure:
    """Draws a panel a rule."""
    with style():
        figure, axes = plt.subplots(1, 2, figsize=(7.8, 3.4), sharey=True)
        fine = arrays["fine/taus"], arrays["fine/omegas"]
        mesh: Any = None
        for ax, name in zip(axes, RULES, strict=True):
            mesh = ax.pcolormesh(
                arrays["taus"],
                arrays["omegas"],
                arrays[f"{name}/q"].T,
                vmin=0,
                vmax=1,
                cmap="viridis",
                rasterized=True,
            )
            limits = dict(xlim=ax.get_xlim(), ylim=ax.get_ylim())
            white: dict[str, Any] = dict(colors="white", linewidths=1)
            contours = ax.contour(*fine, arrays[f"{name}/fine"].T, levels=CONTOURS, **white)
            ax.clabel(contours, fmt="%.1f", fontsize=8)
            transition = arrays[f"{name}/fine/transition"]
            label = r"transition $\omega_c(\tau)$"
            ax.plot(fine[0], transition, "--", color="white", label=label)
            ax.set(xlabel=r"learning rate $\tau$", title=name, **limits)
            ax.grid(visible=False)
        axes[0].set_ylabel(r"signal-to-noise ratio $\omega$")
        axes[1].legend(labelcolor="white", loc="lower right")
        figure.colorbar(mesh, ax=list(axes), label=f"$|q|$ at $t = {T_MAX:g}$")
    return figure
