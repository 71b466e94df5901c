"""The steady state over the signal-to-noise ratio: its densities, and the transition.

Left: lines are eq:steady_state_dist at an entry xi = 1/sqrt(0.05) of Example 3's spike,
crosses the PDE at t = 200; below the transition all densities are the same. Right: lines
are the limits q_s, points the mean of |q| of 10 realisations of the exact chain with one
standard deviation, at p = 10,000 (quick: 2,000) and t = 100 from q0 = 0.3; pale ones are so
near to a transition that the ODE itself has not come to rest by then, and below it |q| is
not 0 but of order 1/sqrt(p). There is no p-dimensional witness: it would take minutes.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import matplotlib.pyplot as plt
import numpy as np
from jaxtyping import Array, Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .._config import Config
from .._densities import FokkerPlanck, density, steady_density
from .._densities.density import Density
from .._model import Sparse, SpikedModel
from .._order_parameters import steady_state
from .._order_parameters.limit import velocity
from .._rule import AbstractRule, InoPCA, Oja
from .._start import WarmStart
from .._sweep import sweep
from ..plot import COLOURS, MARKERS, style
from . import steady_claims
from .claim import Claim
from .curves import TAU, Arrays, P, setting
from .steady_claims import INO, MATCHED, OJA, XI, arrived

# Two curves of 12 by 10 realisations are what a sweep takes at once on a CPU.
OMEGAS = np.array([0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.7, 1.0, 2.0])
SHOWN = (0.1, 0.25, 0.4, 1.0, 2.0)
T_MAX, LATE, REALISATIONS = 100.0, 200.0, 10
LABELS = {
    INO: r"INO-PCA, $\tau = 0.5$",
    OJA: r"Oja, $\tau = 0.5$",
    MATCHED: r"Oja, $\tau = 0.5/(1+\omega)$",
}
# High enough to come down to small overlaps, low enough to come up to large ones.
START = WarmStart(q0=0.3)


def configs(quick: bool = False) -> dict[str, Config]:
    """Both rules at tau = 0.5; omega is swept, and Oja's tau with it in the third curve."""
    p = 2_000 if quick else P
    return {name: _config(rule(TAU), p=p) for name, rule in ((INO, InoPCA), (OJA, Oja))}


def _config(rule: AbstractRule, *, t_max: float = T_MAX, **more: Any) -> Config:
    return setting(rule, t_max=t_max, points=2, start=START, spike=Sparse(), **more)


def compute(quick: bool = False) -> Arrays:
    """The densities of some omega; limits and realisations of all; the ODE at its rests."""
    taus = np.array([0.5, 1e-1, 1e-2, 1e-3, 1e-4])
    found = _swept(configs(quick)) | _lines() | _densities() | _at_rest()
    found |= {"taus": taus, "taus/q_s": _limits(InoPCA, taus, np.ones_like(taus))[0]}
    return {name: np.asarray(value) for name, value in found.items()}


def _swept(both: dict[str, Config]) -> dict[str, Any]:
    """What came of all realisations, and where the ODE has them at that time."""
    alone = [(TAU, omega) for omega in OMEGAS]
    matched = [(TAU / (1 + omega), omega) for omega in OMEGAS]
    # INO-PCA comes along at Oja's matched rates, which nobody looks at: both rules run at
    # the same time, on a core each.
    rates = ("rule.tau", "model.omega")
    got = sweep(
        both[INO],
        {"rule": [config.rule for config in both.values()], rates: alone + matched},
        trials=REALISATIONS,
        key=jr.key(4),
        observables=("trials",),
        theory=True,
    ).isel(time=-1)
    found = {"omega": OMEGAS, "p": both[INO].model.p, "t": T_MAX}
    first, second = slice(len(alone)), slice(len(alone), None)
    rows = {INO: (0, first), OJA: (1, first), MATCHED: (1, second)}
    for name, row in rows.items():
        for quantity in ("q", "lam"):
            found[f"{name}/{quantity}"] = got[f"{quantity}_trials"][row]
            found[f"{name}/{quantity}_ode"] = got[f"{quantity}_theory"][row]
    return found


def _lines() -> dict[str, Any]:
    """The limits, at the omegas of the realisations and between."""
    line, count = np.linspace(0.01, OMEGAS[-1], 400), len(OMEGAS)
    omega = np.concatenate([OMEGAS, line])
    same, matched = np.full_like(omega, TAU), TAU / (1 + omega)
    found: dict[str, Any] = {"line/omega": line}
    rows = {INO: (InoPCA, same), OJA: (Oja, same), MATCHED: (Oja, matched)}
    for name, (rule, tau) in rows.items():
        q, lam = _limits(rule, tau, omega)
        found |= {f"{name}/q_s": q[:count], f"{name}/lam_s": lam[:count]}
        found[f"{name}/line"] = q[count:]
    return found


def _limits(rule: type, taus: np.ndarray, omegas: np.ndarray) -> list[np.ndarray]:
    """`q_s` and `lam_s` at each of the pairs."""

    @eqx.filter_jit
    @jax.vmap
    def limits(tau: Float[Array, ""], omega: Float[Array, ""]):
        return steady_state(Config(rule(tau), SpikedModel(omega=omega)))

    found = limits(*(jnp.asarray(a, float) for a in (taus, omegas)))
    return [np.asarray(a, dtype=float) for a in found]


def _densities() -> dict[str, Any]:
    """Of an entry where the spike's is `XI`: the limit, the paper's formula for it with
    its own q_s and lam_s, and the PDE after a long time, on the limit's grid."""
    rows: dict[str, list] = {name: [] for name in ("x", "limit", "formula", "pde")}
    for omega in SHOWN:
        config = _config(InoPCA(TAU), t_max=LATE, omega=omega)
        limit, pde = steady_density(config), density(config, solver=FokkerPlanck(dt=0.2))
        q, lam = map(float, steady_state(config))
        x = np.asarray(limit.x, dtype=float)
        rows["x"].append(x)
        rows["limit"].append(_at_xi(limit))
        rows["formula"].append(_formula(x, omega, q, lam))
        rows["pde"].append(np.interp(x, np.asarray(pde.x), _at_xi(pde)))
    return {
        f"shown/{name}": np.array(row) for name, row in (rows | {"omega": SHOWN}).items()
    }


def _at_xi(density: Density) -> np.ndarray:
    """At the last time, where the spike's entry, one of two, is `XI`."""
    return np.asarray(density.pdf)[-1, np.argmin(np.abs(np.asarray(density.nodes) - XI))]


def _formula(x: np.ndarray, omega: float, q: float, lam: float) -> np.ndarray:
    """`eq:steady_state_dist`, as it is written, at `XI`."""
    spread = TAU**2 * (omega * q**2 + 1)
    exponent = TAU / spread * (2 * omega * q * XI * x + x**2 / lam - x**2)
    density = np.exp(exponent - exponent.max())
    return density / (density.sum() * (x[1] - x[0]))


def _at_rest() -> Arrays:
    """The ODE where the paper has it at rest, without learning and with: how fast it moves
    there, and the largest real part of its Jacobian's eigenvalues, for each omega."""
    rule = InoPCA(TAU)
    unlearned = (0.0 * OMEGAS, np.full_like(OMEGAS, (1 + (1 + 2 * TAU) ** 0.5) / 2))
    q2 = (OMEGAS**2 + OMEGAS - TAU / 2) / (OMEGAS**2 + OMEGAS + TAU * OMEGAS / 2)
    learned = (np.sqrt(np.maximum(q2, 0)), OMEGAS + 1)

    def field(state: Float[Array, "2"], omega: Float[Array, ""]) -> Float[Array, "2"]:
        now, none = jnp.zeros_like(omega), rule.tau.init(P)
        dq, dlam, _ = velocity(rule, omega, P, now, state[0], state[1], none)
        return jnp.stack([dq, dlam])

    @eqx.filter_jit
    @jax.vmap
    def around(state: Float[Array, "2"], omega: Float[Array, ""]):
        return field(state, omega), jax.jacfwd(field)(state, omega)

    found: Arrays = {"learned": q2 > 0}
    for name, states in (("unlearned", unlearned), ("learned", learned)):
        state, omega = (jnp.asarray(a, float) for a in (np.stack(states, axis=1), OMEGAS))
        speed, slope = (np.asarray(a, dtype=float) for a in around(state, omega))
        found[f"{name}/growth"] = np.real(np.linalg.eigvals(slope)).max(axis=1)
        found[f"{name}/speed"] = np.abs(speed).max(axis=1)
    return found


def draw(found: Arrays) -> Figure:
    """Densities on the left, the transition on the right."""
    with style():
        figure, (left, right) = plt.subplots(1, 2, figsize=(7.6, 3.2))
        _draw_densities(left, found)
        for i, name in enumerate((INO, OJA, MATCHED)):
            _draw_overlaps(right, found, name, i)
        right.set(xlabel=r"signal-to-noise ratio $\omega$", ylabel=r"overlap $|q_s|$")
        right.set(xscale="log", xlim=(0.045, 2.2), ylim=(-0.02, 1.0))
        right.set_xticks(
            [0.05, 0.1, 0.2, 0.5, 1, 2], ["0.05", "0.1", "0.2", "0.5", "1", "2"]
        )
        right.minorticks_off()
        right.legend(loc="upper left")
    return figure


def _draw_densities(ax: Axes, found: Arrays) -> None:
    ax.axvline(XI, color="0.45", linestyle=":", linewidth=1.2)
    top: dict[str, Any] = dict(transform=ax.get_xaxis_transform(), va="top", ha="right")
    ax.text(XI, 0.98, r"$\xi$ ", **top)
    behind = dict(facecolor="white", edgecolor="none", pad=0.4, alpha=0.8)
    for i, omega in enumerate(found["shown/omega"]):
        x, pdf, pde = (found[f"shown/{name}"][i] for name in ("x", "formula", "pde"))
        seen, peak = pdf > 0.003 * pdf.max(), int(np.argmax(pdf))
        look: dict[str, Any] = dict(color=COLOURS[i], markersize=4.5, markevery=8)
        ax.plot(x[seen], pdf[seen], color=COLOURS[i])
        ax.plot(x[seen], pde[seen], "x", **look)
        # The first says what it is, and is longer, to the left, where there is room.
        named, left = (f"$\\omega = {omega:g}$", 0.8) if i == 0 else (f"{omega:g}", 0)
        at: dict[str, Any] = dict(ha="center", va="bottom", bbox=behind, fontsize=9)
        ax.text(x[peak] - left, 1.02 * pdf[peak], named, color=COLOURS[i], **at)
    ax.plot([], [], color="0.3", label="formula")
    ax.plot([], [], "x", color="0.3", markersize=4.5, label=f"PDE, $t = {LATE:g}$")
    ax.set(xlabel="$x$", ylabel=r"$P_s(x\,|\,\xi = 1/\sqrt{0.05})$", xlim=(-5, 17))
    ax.set_ylim(0, 0.53)
    ax.legend(loc="upper right")


def _draw_overlaps(ax: Axes, found: Arrays, name: str, index: int) -> None:
    colour, q = COLOURS[index], np.abs(found[f"{name}/q"])
    matched = name == MATCHED
    line: dict[str, Any] = dict(linestyle=(0, (2, 2)), zorder=3) if matched else {}
    ax.plot(found["line/omega"], found[f"{name}/line"], color=colour, **line)
    hollow: dict[str, Any] = dict(mfc="none", markersize=7) if matched else {}
    for shown in (there := arrived(found, name), ~there):
        ax.errorbar(
            found["omega"][shown],
            q.mean(axis=1)[shown],
            yerr=q.std(axis=1, ddof=1)[shown],
            fmt=MARKERS[index],
            color=colour,
            capsize=2,
            elinewidth=1,
            alpha=1.0 if shown is there else 0.35,
            label=LABELS[name] if shown is there else None,
            **hollow,
        )
    if not matched:
        at = steady_claims.threshold(name)
        ax.axvline(at, 0, 0.7, color=colour, linestyle=":", linewidth=1.2, zorder=1)


def claims(found: Arrays) -> list[Claim]:
    """What the paper says of the figure."""
    return steady_claims.claims(found)
