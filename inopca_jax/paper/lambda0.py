"""The choice of the initial norm lam0, tau = 0.5: learning curves and phase portrait.

Left from q0 = 0.1: points are means of 20 trials of the exact chain at p = 10,000 with a
third of their standard deviation, lines the ODEs, open markers trials of the p-dimensional
algorithm. Right the flow of eq:Q_t and eq:lambda_t with paths from q0 = 0.01, in red that
from lam0 = (1 + sqrt(1 + 2 tau))/2, and the two fixed points.
"""

from typing import Any

import jax
import matplotlib.pyplot as plt
import numpy as np
from jaxtyping import Array
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from .. import plot
from .._config import Config
from .._order_parameters import best_lam0, mean_field, steady_state
from .._order_parameters.limit import velocity
from .._rule import InoPCA
from .._start import WarmStart
from .._types import Real, real
from .curves import OMEGA, TAU, TRIALS, Arrays, P, curves, learned, setting
from .lambda0_claims import (
    FINE,
    LAM0S,
    LONG,
    MANY,
    PATHS,
    Q0_PORTRAIT,
    T_MAX,
    UNLEARNED,
    claims,
    name_of,
)
from .overlap_panel import overlap_panel

POINTS = 61
# Where the flow is drawn.
_Q_GRID, _LAM_GRID = np.linspace(0.0, 1.0, 41), np.linspace(0.05, 3.0, 41)


def configs(quick: bool = False) -> dict[str, Config]:
    """One for each norm."""
    starts = {name_of(x): WarmStart(q0=0.1, lam0=x) for x in LAM0S}
    rule = InoPCA(TAU)
    return {
        name: setting(rule, t_max=T_MAX, points=POINTS, start=start)
        for name, start in starts.items()
    }


def compute(quick: bool = False) -> Arrays:
    """Theory and trials of the curves; the flow, its paths and fixed points; paths from
    many norms; and the rate at which the overlap first rises from each norm."""
    until = None if quick else {name_of(0.5): 6.0}
    found = learned(configs(quick), trials=TRIALS, seed=12, witness=until)
    lam0s = np.concatenate([[UNLEARNED], PATHS, MANY, MANY])
    q0s = np.full(len(lam0s), Q0_PORTRAIT)
    q0s[-len(MANY) :] = 0.1
    q, lam = (np.asarray(x) for x in _paths(real(q0s), real(lam0s)))
    ends = 1 + len(PATHS), len(PATHS) + 1 + len(MANY)
    for name, x in (("q", q), ("lam", lam)):
        found[f"portrait/{name}"], found[f"cold/{name}"], found[f"warm/{name}"] = np.split(
            x, ends
        )
    flow = _flows(*(real(x.ravel()) for x in np.meshgrid(_Q_GRID, _LAM_GRID)))
    found["portrait/flow"] = np.stack(flow).reshape(2, len(_LAM_GRID), len(_Q_GRID))
    for q0 in (Q0_PORTRAIT, 0.1):
        rises, _ = _flows(real(np.full(len(FINE), q0)), real(FINE))
        found[f"fastest/{q0}"] = np.asarray(FINE[np.argmax(rises)])
        found[f"said/{q0}"] = np.asarray(best_lam0(TAU, OMEGA, q0))
        falls = FINE[np.asarray(rises) < 0]
        found[f"falls/{q0}"] = np.asarray(falls.max(initial=0))
    return found | _fixed_points()


@jax.jit
@jax.vmap
def _paths(q0: Real, lam0: Real) -> tuple[Array, Array]:
    path = mean_field(Config(InoPCA(TAU), start=WarmStart(q0, lam0), ts=LONG))
    return path.q, path.lam


def _flow(q: Real, lam: Real) -> tuple[Real, Real]:
    """The right-hand sides of eq:Q_t and eq:lambda_t."""
    return velocity(InoPCA(TAU), real(OMEGA), P, real(0), q, lam, ())[:2]


_flows = jax.jit(jax.vmap(_flow))


def _fixed_points() -> Arrays:
    """The fixed points (q, lam), and the eigenvalues of the flow's Jacobian there."""
    points = np.array([(0, UNLEARNED), steady_state(Config(InoPCA(TAU)))], float)
    jacobian = jax.jit(jax.vmap(jax.jacfwd(_flow, (0, 1))))
    (qq, ql), (lq, ll) = (map(np.asarray, row) for row in jacobian(*real(points.T)))
    jacobians = np.moveaxis(np.array([[qq, ql], [lq, ll]], float), -1, 0)
    values = np.sort(np.real(np.linalg.eigvals(jacobians)), axis=1)
    return {"fixed/at": points, "fixed/eigenvalues": values}


def draw(found: Arrays) -> Figure:
    """The curves, and the portrait."""
    with plot.style():
        figure, (left, right) = plt.subplots(
            1, 2, figsize=(7.6, 3.9), gridspec_kw=dict(width_ratios=[1.25, 1])
        )
        names = overlap_panel(left, curves(found))
        _portrait(right, found)
        figure.legend(handles=names, loc="outside upper center", ncols=4)
    return figure


def _portrait(ax: Axes, found: Arrays) -> None:
    q, lam = found["portrait/q"], found["portrait/lam"]
    dq, dlam = found["portrait/flow"]
    look: dict[str, Any] = dict(color="0.75", linewidth=0.6, arrowsize=0.6, density=0.9)
    ax.streamplot(_Q_GRID, _LAM_GRID, dq, dlam, **look)
    ax.plot(q[1:].T, lam[1:].T, color=plot.COLOURS[0], linewidth=1.1)
    ax.plot(q[1:, 0], lam[1:, 0], ".", color=plot.COLOURS[0])
    ax.plot(q[0], lam[0], color="red", linewidth=2)
    handles = [
        Line2D([], [], color=plot.COLOURS[0], linewidth=1.1, label=r"from $q_0 = 0.01$"),
        Line2D([], [], color="red", linewidth=2, label=rf"$\lambda_0 = {UNLEARNED:.3f}$"),
    ]
    for at, (low, high) in zip(found["fixed/at"], found["fixed/eigenvalues"], strict=True):
        kind = "stable" if high < 0 else "saddle" if low < 0 < high else "unstable"
        look = dict(mfc="black" if high < 0 else "white", color="black", linestyle="none")
        (point,) = ax.plot(*at, "o", markersize=6, zorder=5, label=kind, **look)
        handles.append(point)
    ax.set(xlabel=r"overlap $q$", ylabel=r"norm $\lambda$", xlim=(-0.03, 1), ylim=(0, 3.05))
    ax.grid(visible=False)
    frame: dict[str, Any] = dict(
        frameon=True, framealpha=0.9, edgecolor="none", handlelength=1.4
    )
    ax.legend(handles=handles, loc="lower right", **frame)


__all__ = ["claims", "compute", "configs", "draw"]
