"""The phase diagram: what is learnt at each learning rate and signal-to-noise ratio.

Colour is |q| of the exact chain at p = 2,000 after t = 40 from q0 = 0.5, a few trials a
cell. The dashed line is the transition omega_c(tau), below which theory says that nothing
is learnt; thin lines are where it has a steady overlap of 0.5, 0.8 and 0.9.
"""

from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from .._config import Config
from .._model import SpikedModel
from .._order_parameters import critical_snr, steady_state
from .._rule import InoPCA, Oja
from .._start import WarmStart
from .._sweep import sweep
from ..plot import style
from .claim import Claim, verdict
from .curves import TAU, Arrays

RULES: dict[str, Any] = {"INO-PCA": InoPCA, "Oja": Oja}
SIZE, LATE = 2000, 40.0
TAUS, OMEGAS = (0.2, 3.0), (0.05, 2.0)
LEVELS = (0.5, 0.8, 0.9)
# Closer to the line than this in omega, the time to settle and the scatter diverge.
MARGIN = 0.2
# Of a run at this p that has learnt nothing, |q| is about 1/sqrt(p) = 0.02, and up to
# this where it has not forgotten its start.
NOTHING, LEARNT = 0.15, 0.3


def configs(quick: bool = False) -> dict[str, Config]:
    """What is swept, tau and omega aside."""
    model, ts = SpikedModel(p=SIZE), np.array([LATE])
    return {k: Config(rule(TAU), model, WarmStart(0.5), ts) for k, rule in RULES.items()}


def compute(quick: bool = False) -> Arrays:
    """|q| over the grid, and theory: the transition, and steady overlaps on the grid and,
    for the contours, on a finer one."""
    points, trials = (12, 2) if quick else (24, 3)
    taus, omegas = (np.linspace(*ends, points) for ends in (TAUS, OMEGAS))
    fine = [np.linspace(*ends, 80) for ends in (TAUS, OMEGAS)]
    found: Arrays = {"taus": taus, "omegas": omegas}
    found |= {"fine/taus": fine[0], "fine/omegas": fine[1]}
    for name, config in configs(quick).items():
        grid = {"rule.tau": taus, "model.omega": omegas}
        cells = sweep(config, grid, trials=trials, key=jr.key(9))
        found[f"{name}/q"] = np.asarray(cells["abs_q_mean"].isel(time=-1))
        found[f"{name}/steady"] = _steady(RULES[name], taus, omegas)
        found[f"{name}/fine"] = _steady(RULES[name], *fine)
        snr = jax.vmap(lambda tau, rule=RULES[name]: critical_snr(rule(tau)))
        found[f"{name}/transition"] = np.asarray(snr(jnp.asarray(taus)))
        found[f"{name}/fine/transition"] = np.asarray(snr(jnp.asarray(fine[0])))
    return found


def _steady(rule: Any, taus: np.ndarray, omegas: np.ndarray) -> np.ndarray:
    """The steady overlap, of shape (taus, omegas)."""

    def one(tau: Any, omega: Any) -> Any:
        return steady_state(Config(rule(tau), SpikedModel(omega=omega)))[0]

    rows = jax.vmap(jax.vmap(one, (None, 0)), (0, None))
    return np.asarray(rows(jnp.asarray(taus), jnp.asarray(omegas)))


def draw(found: Arrays) -> Figure:
    """A panel a rule."""
    with style():
        figure, axes = plt.subplots(1, 2, figsize=(7.8, 3.4), sharey=True)
        fine = found["fine/taus"], found["fine/omegas"]
        drawn: Any = None
        for ax, name in zip(axes, RULES, strict=True):
            drawn = ax.pcolormesh(
                found["taus"],
                found["omegas"],
                found[f"{name}/q"].T,
                vmin=0,
                vmax=1,
                cmap="viridis",
                rasterized=True,
            )
            limits = dict(xlim=ax.get_xlim(), ylim=ax.get_ylim())
            look: dict[str, Any] = dict(colors="white", linewidths=1)
            lines = ax.contour(*fine, found[f"{name}/fine"].T, levels=LEVELS, **look)
            ax.clabel(lines, fmt="%.1f", fontsize=8)
            line = found[f"{name}/fine/transition"]
            ax.plot(
                fine[0], line, "--", color="white", label=r"transition $\omega_c(\tau)$"
            )
            ax.set(xlabel=r"learning rate $\tau$", title=name, **limits)
            ax.grid(visible=False)
        axes[0].set_ylabel(r"signal-to-noise ratio $\omega$")
        axes[1].legend(labelcolor="white", loc="lower right")
        figure.colorbar(drawn, ax=list(axes), label=f"$|q|$ at $t = {LATE:g}$")
    return figure


def claims(found: Arrays) -> list[Claim]:
    """What the paper says of the transition and of Oja's."""
    return [_unable(found), _capacity(found), _lower(found), _higher(found)]


def _beyond(found: Arrays, name: str) -> np.ndarray:
    """How far above the transition the cells are, in omega."""
    return found["omegas"][None, :] - found[f"{name}/transition"][:, None]


def _unable(found: Arrays) -> Claim:
    below, above = [], []
    for name in RULES:
        far, q = _beyond(found, name), found[f"{name}/q"]
        below.append(q[far < -MARGIN])
        above.append((q / np.maximum(found[f"{name}/steady"], 1e-6))[far > MARGIN])
    low, high = np.concatenate(below), np.concatenate(above)
    return Claim(
        "after eq:learning_capacity",
        "the algorithm is unable to learn when omega is in (0, omega_c), and a phase "
        "transition occurs at omega_c",
        float(low.max()),
        NOTHING,
        f"below the line by {MARGIN} or more |q| has fallen from 0.5 to {low.mean():.3f} "
        f"in the mean of {low.size} cells, {low.max():.3f} at most; above by as much it is "
        f"{high.min():.2f} to {high.max():.2f} times the steady overlap in {high.size}",
        verdict(bool(low.max() < NOTHING and high.min() > 0.5)),
        "holds",
        "For INO-PCA and, with its own omega_c = tau/2, for Oja's method. Nearer to the "
        "line a run of finite p and time is in between.",
    )


def _capacity(found: Arrays) -> Claim:
    gaps, crossings = [], []
    for name in RULES:
        q, steady = found[f"{name}/q"], found[f"{name}/steady"]
        gaps.append(np.abs(q - steady)[np.abs(_beyond(found, name)) > MARGIN])
        for row, ideal in zip(q, steady, strict=True):
            ends = np.array([row[0], ideal[0], -row[-1], -ideal[-1]])
            if np.all(ends < LEVELS[0] * np.array([1, 1, -1, -1])):
                at = [_crossing(found["omegas"], x, LEVELS[0]) for x in (row, ideal)]
                crossings.append(at[0] - at[1])
    # Where hardly any rate has a crossing, there is no mean to speak of.
    shift = np.array(crossings) if len(crossings) > 1 else np.full(2, np.nan)
    gap, error = np.concatenate(gaps), float(shift.std(ddof=1) / len(shift) ** 0.5)
    return Claim(
        "eq:learning_capacity",
        "the limiting performance is Q_s^2 = (omega^2 + omega - tau/2)/(omega^2 + omega + "
        "tau omega/2)",
        float(np.median(gap)),
        0.02,
        f"|q| is {np.median(gap):.3f} from the steady overlap in the median over cells, "
        f"{np.quantile(gap, 0.9):.3f} in nine of ten; it crosses 0.5 at an omega that is "
        f"{shift.mean():+.3f} +- {error:.3f} off, over {len(crossings)} rates",
        verdict(bool(np.median(gap) < 0.02 and abs(shift.mean()) < 0.02 + 4 * error)),
        "holds",
        "For INO-PCA, and Oja's (2 omega - tau)/(omega (2 + tau)), away from the "
        "transition; what is left is scatter at p = 2,000 and slow rates at t = 40.",
    )


def _crossing(x: np.ndarray, y: np.ndarray, level: float) -> float:
    """Where y, that rises from below, first passes the level, between two points."""
    i = int(np.argmax(y >= level))
    return float(np.interp(level, y[i - 1 : i + 1], x[i - 1 : i + 1]))


def _lower(found: Arrays) -> Claim:
    lines = [found[f"{name}/fine/transition"] for name in RULES]
    gap = lines[1] - lines[0]
    ours, theirs = (found[f"{name}/q"] > LEARNT for name in RULES)
    only, other = int(np.sum(ours & ~theirs)), int(np.sum(theirs & ~ours))
    return Claim(
        "Steady-state analysis",
        "our method has a lower phase transition threshold than Oja's",
        float(gap.min()),
        0.0,
        f"omega_c is lower by {gap.min():.3f} (tau = {TAUS[0]:g}) to {gap.max():.3f} (tau "
        f"= {TAUS[1]:g}); of {ours.size} cells {only} are learnt (|q| > {LEARNT}) by "
        f"INO-PCA alone and {other} by Oja alone",
        verdict(bool(gap.min() > 0 and only > 20 * other)),
        "holds",
        "At equal tau: (sqrt(1 + 2 tau) - 1)/2 < tau/2 for every tau > 0, as INO-PCA's "
        "gain is tau over a norm above 1.",
    )


def _higher(found: Arrays) -> Claim:
    steady = [found[f"{name}/fine"] for name in RULES]
    learns = steady[0] > 0
    margin = (steady[0] - steady[1])[learns]
    gap = (found["INO-PCA/q"] - found["Oja/q"])[_beyond(found, "INO-PCA") > MARGIN]
    error = float(gap.std(ddof=1) / gap.size**0.5)
    return Claim(
        "Steady-state analysis",
        "and achieves a higher Q_s",
        float(gap.mean()),
        error,
        f"in theory by {margin.min():.3f} to {margin.max():.3f} wherever INO-PCA learns; "
        f"measured, |q| is higher in {np.mean(gap > 0):.1%} of {gap.size} cells, by "
        f"{gap.mean():.3f} +- {error:.3f} in the mean",
        verdict(bool(margin.min() > 0 and gap.mean() > 4 * error)),
        "holds",
        "At equal tau. Oja's method at tau/(1 + omega) has the same steady overlap, as the "
        "paper says.",
    )
