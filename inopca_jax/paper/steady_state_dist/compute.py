"""Steady densities and steady overlaps over the signal-to-noise ratio."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float

import inopca_jax as ino

from ..claim import Arrays
from ..learning_curves import TAU, UNLEARNED_NORM, P, linearised, paper_config

INO, OJA, MATCHED = "INO-PCA", "Oja", "Oja, matched"
# The spike's entry at which densities are shown.
XI = 0.05**-0.5
# Two curves of 12 cells by 10 trials are as much as a sweep computes at once on a CPU.
OMEGAS = np.array([0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.7, 1.0, 2.0])
DENSITY_OMEGAS = (0.1, 0.25, 0.4, 1.0, 2.0)
# The time at which overlaps are measured, and that of the densities.
T_MAX, T_DENSITY, TRIALS = 100.0, 200.0, 10
# Between small and large steady overlaps, so that trials reach both in time.
START = ino.WarmStart(q0=0.3)


def configs(quick: bool = False) -> dict[str, ino.Config]:
    """Returns both rules at tau = 0.5. The sweep varies omega, and for Oja's matched rate
    tau with it."""
    p = 2_000 if quick else P
    rules = {INO: ino.InoPCA(TAU), OJA: ino.Oja(TAU)}
    return {name: _config(rule, p=p) for name, rule in rules.items()}


def _config(rule: ino.AbstractRule, *, t_max: float = T_MAX, **options: Any) -> ino.Config:
    spike = ino.Sparse()
    return paper_config(rule, t_max=t_max, points=2, start=START, spike=spike, **options)


def compute(quick: bool = False) -> Arrays:
    """Returns densities at some omegas; limits and trials at all; and the ODE's velocity
    and Jacobian at its fixed points."""
    taus = np.array([0.5, 1e-1, 1e-2, 1e-3, 1e-4])
    arrays = _trials(configs(quick)) | _limits() | _densities() | _fixed_points()
    q_s, _ = _steady_states(ino.InoPCA, taus, np.ones_like(taus))
    arrays |= {"taus": taus, "taus/q_s": q_s}
    return {name: np.asarray(value) for name, value in arrays.items()}


def _trials(configs: dict[str, ino.Config]) -> dict[str, Any]:
    """Returns the overlaps and norms of all trials, and those of the ODE at the same
    time."""
    same = [(TAU, omega) for omega in OMEGAS]
    matched = [(TAU / (1 + omega), omega) for omega in OMEGAS]
    # The sweep also runs INO-PCA at Oja's matched rates, which is not used: so both rules
    # run at the same time, on a core each.
    dataset = ino.sweep(
        configs[INO],
        {
            "rule": [config.rule for config in configs.values()],
            ("rule.tau", "model.omega"): same + matched,
        },
        trials=TRIALS,
        key=jr.key(4),
        observables=("trials",),
        theory=True,
    ).isel(time=-1)
    arrays = {"omega": OMEGAS, "p": int(configs[INO].model.p), "t": T_MAX}
    first, second = slice(len(same)), slice(len(same), None)
    cells = {INO: (0, first), OJA: (1, first), MATCHED: (1, second)}
    for name, cell in cells.items():
        for quantity in ("q", "lam"):
            arrays[f"{name}/{quantity}"] = dataset[f"{quantity}_trials"][cell]
            arrays[f"{name}/{quantity}_ode"] = dataset[f"{quantity}_theory"][cell]
    return arrays


def _limits() -> dict[str, Any]:
    """Returns the steady states at the omegas of the trials, and on a fine grid."""
    line, count = np.linspace(0.01, OMEGAS[-1], 400), len(OMEGAS)
    omega = np.concatenate([OMEGAS, line])
    same, matched = np.full_like(omega, TAU), TAU / (1 + omega)
    arrays: dict[str, Any] = {"line/omega": line}
    curves = {INO: (ino.InoPCA, same), OJA: (ino.Oja, same), MATCHED: (ino.Oja, matched)}
    for name, (rule, tau) in curves.items():
        q, lam = _steady_states(rule, tau, omega)
        arrays |= {f"{name}/q_s": q[:count], f"{name}/lam_s": lam[:count]}
        arrays[f"{name}/line"] = q[count:]
    return arrays


def _steady_states(rule: type, taus: np.ndarray, omegas: np.ndarray) -> list[np.ndarray]:
    """Returns `q_s` and `lam_s` at each pair of a rate and a signal-to-noise ratio."""

    @eqx.filter_jit
    @jax.vmap
    def steady_states(tau: Float[Array, ""], omega: Float[Array, ""]):
        return ino.steady_state(ino.Config(rule(tau), ino.SpikedModel(omega=omega)))

    pairs = steady_states(*(jnp.asarray(a, float) for a in (taus, omegas)))
    return [np.asarray(a, dtype=float) for a in pairs]


def _densities() -> dict[str, Any]:
    """Returns densities of an entry where the spike's entry is `XI`, on one grid.

    These are the steady density, the paper's formula for it with its q_s and lam_s, and the
    PDE's solution after a long time.
    """
    columns: dict[str, list] = {name: [] for name in ("x", "limit", "formula", "pde")}
    for omega in DENSITY_OMEGAS:
        config = _config(ino.InoPCA(TAU), t_max=T_DENSITY, omega=omega)
        limit = ino.steady_density(config)
        pde = ino.density(config, solver=ino.FokkerPlanck(dt=0.2))
        q, lam = map(float, ino.steady_state(config))
        x = np.asarray(limit.x, dtype=float)
        columns["x"].append(x)
        columns["limit"].append(_at_xi(limit))
        columns["formula"].append(_formula(x, omega, q, lam))
        columns["pde"].append(np.interp(x, np.asarray(pde.x), _at_xi(pde)))
    columns["omega"] = list(DENSITY_OMEGAS)
    return {f"density/{name}": np.array(rows) for name, rows in columns.items()}


def _at_xi(density: ino.Density) -> np.ndarray:
    """Returns the density at the last time, given the spike's entry `XI`, one of two."""
    return np.asarray(density.pdf)[-1, np.argmin(np.abs(np.asarray(density.nodes) - XI))]


def _formula(x: np.ndarray, omega: float, q: float, lam: float) -> np.ndarray:
    """Returns `eq:steady_state_dist`, as the paper writes it, at `XI`."""
    spread = TAU**2 * (omega * q**2 + 1)
    exponent = TAU / spread * (2 * omega * q * XI * x + x**2 / lam - x**2)
    density = np.exp(exponent - exponent.max())
    return density / (density.sum() * (x[1] - x[0]))


def _fixed_points() -> Arrays:
    """Returns, at the paper's two fixed points and for each omega, the ODE's velocity, and
    the largest real part of the eigenvalues of its Jacobian."""
    q2 = (OMEGAS**2 + OMEGAS - TAU / 2) / (OMEGAS**2 + OMEGAS + TAU * OMEGAS / 2)
    states = {
        "unlearned": (0 * OMEGAS, np.full_like(OMEGAS, UNLEARNED_NORM)),
        "learned": (np.sqrt(np.maximum(q2, 0)), OMEGAS + 1),
    }
    arrays: Arrays = {"learned": q2 > 0}
    for name, state in states.items():
        velocities, eigenvalues = linearised(*state, OMEGAS)
        arrays[f"{name}/growth"] = eigenvalues[:, -1]
        arrays[f"{name}/speed"] = np.abs(velocities).max(axis=1)
    return arrays
