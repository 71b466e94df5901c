"""The drawing of steady densities and steady overlaps."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from inopca_jax.plot import COLOURS, style

from ..claim import Arrays
from ..drawing import points
from ..statistics import Mean
from .claims import critical_omega, has_converged
from .compute import INO, MATCHED, OJA, T_DENSITY, XI

LABELS = {
    INO: r"INO-PCA, $\tau = 0.5$",
    OJA: r"Oja, $\tau = 0.5$",
    MATCHED: r"Oja, $\tau = 0.5/(1+\omega)$",
}


def draw(arrays: Arrays) -> Figure:
    """Draws densities on the left and the transition on the right."""
    with style():
        figure, (left, right) = plt.subplots(1, 2, figsize=(7.6, 3.2))
        _draw_densities(left, arrays)
        for i, name in enumerate((INO, OJA, MATCHED)):
            _draw_overlaps(right, arrays, name, i)
        right.set(xlabel=r"signal-to-noise ratio $\omega$", ylabel=r"overlap $|q_s|$")
        right.set(xscale="log", xlim=(0.045, 2.2), ylim=(-0.02, 1.0))
        ticks = (0.05, 0.1, 0.2, 0.5, 1, 2)
        right.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        right.minorticks_off()
        right.legend(loc="upper left")
    return figure


def _draw_densities(ax: Axes, arrays: Arrays) -> None:
    ax.axvline(XI, color="0.45", linestyle=":", linewidth=1.2)
    at_top: dict[str, Any] = dict(transform=ax.get_xaxis_transform(), va="top", ha="right")
    ax.text(XI, 0.98, r"$\xi$ ", **at_top)
    background = dict(facecolor="white", edgecolor="none", pad=0.4, alpha=0.8)
    for i, omega in enumerate(arrays["density/omega"]):
        x, pdf, pde = (arrays[f"density/{name}"][i] for name in ("x", "formula", "pde"))
        visible, peak = pdf > 0.003 * pdf.max(), int(np.argmax(pdf))
        crosses: dict[str, Any] = dict(color=COLOURS[i], markersize=4.5, markevery=8)
        ax.plot(x[visible], pdf[visible], color=COLOURS[i])
        ax.plot(x[visible], pde[visible], "x", **crosses)
        # The first label names omega; it is longer, so it is moved to where there is room.
        label, shift = (f"$\\omega = {omega:g}$", 0.8) if i == 0 else (f"{omega:g}", 0)
        text: dict[str, Any] = dict(ha="center", va="bottom", bbox=background, fontsize=9)
        ax.text(x[peak] - shift, 1.02 * pdf[peak], label, color=COLOURS[i], **text)
    ax.plot([], [], color="0.3", label="formula")
    ax.plot([], [], "x", color="0.3", markersize=4.5, label=f"PDE, $t = {T_DENSITY:g}$")
    ax.set(xlabel="$x$", ylabel=r"$P_s(x\,|\,\xi = 1/\sqrt{0.05})$", xlim=(-5, 17))
    ax.set_ylim(0, 0.53)
    ax.legend(loc="upper right")


def _draw_overlaps(ax: Axes, arrays: Arrays, name: str, index: int) -> None:
    colour, q = COLOURS[index], np.abs(arrays[f"{name}/q"])
    matched = name == MATCHED
    line: dict[str, Any] = dict(linestyle=(0, (2, 2)), zorder=3) if matched else {}
    ax.plot(arrays["line/omega"], arrays[f"{name}/line"], color=colour, **line)
    hollow: dict[str, Any] = dict(mfc="none", markersize=7) if matched else {}
    converged = has_converged(arrays, name)
    for shown, alpha, label in ((converged, 1.0, LABELS[name]), (~converged, 0.35, None)):
        mean = Mean(q.mean(axis=1), q.std(axis=1, ddof=1))[shown]
        points(ax, arrays["omega"][shown], mean, index, alpha=alpha, label=label, **hollow)
    if not matched:
        critical = critical_omega(name)
        ax.axvline(critical, 0, 0.7, color=colour, linestyle=":", linewidth=1.2, zorder=1)
