"""The Fokker-Planck solver against SciPy's LSODA on the same cells, at the same error.

python -m benchmarks.density [--quick]

SciPy's BDF has no banded Jacobian; with a sparse one it takes minutes, so LSODA it is.
"""

import sys
from typing import Any

import jax
import numpy as np
from scipy.integrate import solve_ivp

import inopca_jax as ino
from inopca_jax._densities.fokker_planck import _cut, _march
from inopca_jax._densities.grid import lay
from inopca_jax._densities.solver import stretches

from .report import report, seconds

TAU, OMEGA, T, LEVEL = 0.5, 1.0, 20.0, 2e-4
DOMAIN = (-10.25, 10.25)  # what the default chooses for this config


def study() -> ino.Config:
    return ino.Config(ino.InoPCA(TAU), ino.SpikedModel(omega=OMEGA), ts=np.array([T]))


def distance(pdf: np.ndarray, exact: ino.Density) -> float:
    """The L1 distance of the joint densities of (x, xi)."""
    off = np.abs(pdf - np.asarray(exact.pdf)[0]).sum(axis=1) * float(exact.width)
    return float(np.asarray(exact.weights) @ off)


def numpy_system(exact: ino.Density):
    """`d pdf/dt` on the same cells, with the same fluxes, in NumPy."""
    x, xi, weight = (np.asarray(a) for a in (exact.x, exact.nodes, exact.weights))
    width, shape = float(exact.width), (xi.size, x.size)
    faces = (x[1:] + x[:-1]) / 2

    def rhs(_, flat):
        pdf = flat.reshape(shape)
        along = width * (weight * xi) @ (pdf @ x)
        square = width * weight @ (pdf @ x**2)
        lam = np.sqrt(square)
        q = along / lam
        back, spread = TAU / lam - TAU, TAU**2 * (OMEGA * q**2 + 1) / 2
        peclet = width / spread * (TAU * OMEGA * q * xi[:, None] + back * faces)
        ratio = width**2 * back / (6 * spread)
        fastest = np.abs(TAU * OMEGA * q) * np.abs(xi).max() + np.abs(back) * faces[-1]
        ratio /= np.sqrt(1 + (width * fastest / spread / 12) ** 2)
        scale = spread / width**2 * (1 - ratio)
        down = scale * np.where(np.abs(peclet) < 1e-5, 1.0, peclet / np.expm1(peclet))
        flux = (down + scale * peclet) * pdf[:, :-1] - down * pdf[:, 1:]
        change = np.zeros(shape)
        change[:, :-1] -= flux
        change[:, 1:] += flux
        return change.ravel()

    return rhs


def race(cells: int, nodes: int, repeats: int, dts, tolerances) -> None:
    kind: dict[str, Any] = dict(cells=cells, nodes=nodes, domain=DOMAIN)
    exact = ino.density(study(), solver=ino.ClosedForm(**kind))
    begin = ino.Config(ino.InoPCA(TAU), ino.SpikedModel(omega=OMEGA), ts=np.array([0.0]))
    first = np.asarray(ino.density(begin, solver=ino.ClosedForm(**kind)).pdf).ravel()
    rhs, best = numpy_system(exact), None
    for rtol, atol in tolerances:

        def lsoda(_, rtol=rtol, atol=atol):
            return solve_ivp(
                rhs, (0, T), first, "LSODA", [T], rtol=rtol, atol=atol, lband=1, uband=1
            ).y

        error = distance(lsoda(0).reshape(nodes, cells), exact)
        if error <= LEVEL:
            taken, _ = seconds(lsoda, repeats)
            best = min((taken, error), best or (taken, error))
    assert best is not None
    ours = None
    for dt in dts:
        solver = ino.FokkerPlanck(dt=dt, **kind)
        error = distance(np.asarray(ino.density(study(), solver=solver).pdf)[0], exact)
        if error <= LEVEL:
            ours = (solver, error)
    assert ours is not None
    solver, error = ours
    # SciPy is handed the cells, the start and the equation, so this is timed apart.
    grid, _ = lay(study(), cells, nodes, DOMAIN)
    plan = [_cut(stretch, solver.dt) for stretch in stretches(study())]
    steps, compiling = seconds(lambda _: _march(study(), grid, plan)[0].pdf, 5 * repeats)
    whole, _ = seconds(lambda _: ino.density(study(), solver=solver).pdf, 5 * repeats)
    for name, taken in (("stepping", steps), ("whole call", whole)):
        report(
            f"density, {name}, vs SciPy LSODA at L1 error 2e-4",
            ours=taken,
            baseline=best[0],
            unit="s",
            p=None,
            trials=None,
            dtype="float64",
            cells=cells,
            nodes=nodes,
            dt=solver.dt,
            errors=[float(f"{e:.2g}") for e in (error, best[1])],
            compile_seconds=round(compiling, 2),
        )


def growth(sizes: tuple[int, int], most: tuple[int, int], repeats: int) -> None:
    """Whether four times the cells, or the nodes, take four times as long."""
    small, large = {}, {}
    for name, cells, nodes in (
        ("small", *sizes),
        ("cells", most[0], sizes[1]),
        ("nodes", sizes[0], most[1]),
    ):
        solver = ino.FokkerPlanck(cells=cells, nodes=nodes, dt=0.1, domain=DOMAIN)
        taken, _ = seconds(lambda _, s=solver: ino.density(study(), solver=s).pdf, repeats)
        (small if name == "small" else large)[name] = taken
    for i, name in enumerate(("cells", "nodes")):
        report(
            f"density, {sizes[i]} to {most[i]} {name}, vs linear",
            ours=large[name],
            baseline=small["small"] * most[i] / sizes[i],
            unit="s",
            p=None,
            trials=None,
            dtype="float64",
        )


def main(quick: bool = False) -> None:
    with jax.enable_x64(True):
        if quick:
            race(400, 4, 1, [0.5], [(1e-3, 1e-6)])
        else:
            growth((400, 16), (1600, 64), 5)
            dts = [T / 32, T / 25, T / 23, T / 21, T / 20]
            race(400, 32, 3, dts, [(1e-2, 1e-5), (1e-3, 1e-5), (1e-3, 1e-6), (1e-4, 1e-6)])


if __name__ == "__main__":
    main(quick="--quick" in sys.argv[1:])
