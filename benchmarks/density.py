"""Compares the Fokker-Planck solver with SciPy's LSODA on the same cells, at equal error.

python -m benchmarks.density [--quick]

Of SciPy's implicit solvers only LSODA takes a banded Jacobian; BDF with a sparse one takes
minutes.
"""

import sys
from typing import Any

import jax
import numpy as np
from scipy.integrate import solve_ivp

import inopca_jax as ino
from inopca_jax._densities.fokker_planck import _integrate, _time_steps
from inopca_jax._densities.grid import build_grid
from inopca_jax._densities.solver import known_segments

from .report import report, seconds

TAU, OMEGA, T, LEVEL = 0.5, 1.0, 20.0, 2e-4
DOMAIN = (-10.25, 10.25)  # the default for this config


def make_config(t: float = T) -> ino.Config:
    return ino.Config(ino.InoPCA(TAU), ino.SpikedModel(omega=OMEGA), ts=np.array([t]))


def distance(pdf: np.ndarray, exact: ino.Density) -> float:
    """Returns the L1 distance of the joint densities of (x, xi)."""
    by_node = np.abs(pdf - np.asarray(exact.pdf)[0]).sum(axis=1) * float(exact.width)
    return float(np.asarray(exact.weights) @ by_node)


def numpy_system(exact: ino.Density):
    """Returns the function `d pdf/dt` on the same cells, with the same fluxes, in NumPy."""
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


def compare(cells: int, nodes: int, repeats: int, dts, tolerances) -> None:
    """Compares the times to reach the error `LEVEL`: for each side, with the fastest of the
    given steps or tolerances that does."""
    size: dict[str, Any] = dict(cells=cells, nodes=nodes, domain=DOMAIN)
    exact = ino.density(make_config(), solver=ino.ClosedForm(**size))
    start = ino.density(make_config(0.0), solver=ino.ClosedForm(**size))
    initial, rhs = np.asarray(start.pdf).ravel(), numpy_system(exact)
    scipy_times = []
    for rtol, atol in tolerances:

        def lsoda(_, rtol=rtol, atol=atol):
            return solve_ivp(
                rhs, (0, T), initial, "LSODA", [T], rtol=rtol, atol=atol, lband=1, uband=1
            ).y

        error = distance(lsoda(0).reshape(nodes, cells), exact)
        if error <= LEVEL:
            scipy_times.append((seconds(lsoda, repeats)[0], error))
    scipy_time, scipy_error = min(scipy_times)
    # The steps are in increasing order.
    accurate = []
    for dt in dts:
        solver = ino.FokkerPlanck(dt=dt, **size)
        error = distance(
            np.asarray(ino.density(make_config(), solver=solver).pdf)[0], exact
        )
        if error <= LEVEL:
            accurate.append((solver, error))
    solver, error = accurate[-1]
    # SciPy is given the cells, the start and the equation, so stepping is also timed alone.
    grid, _ = build_grid(make_config(), cells, nodes, DOMAIN)
    plan = [_time_steps(segment, solver.dt) for segment in known_segments(make_config())]
    stepping, compiling = seconds(
        lambda _: _integrate(make_config(), grid, plan)[0].pdf, 5 * repeats
    )
    whole, _ = seconds(lambda _: ino.density(make_config(), solver=solver).pdf, 5 * repeats)
    for name, our_time in (("stepping", stepping), ("whole call", whole)):
        report(
            f"density, {name}, vs SciPy LSODA at L1 error 2e-4",
            ours=our_time,
            baseline=scipy_time,
            unit="s",
            p=None,
            trials=None,
            dtype="float64",
            cells=cells,
            nodes=nodes,
            dt=solver.dt,
            errors=[float(f"{e:.2g}") for e in (error, scipy_error)],
            compile_seconds=round(compiling, 2),
        )


def growth(least: tuple[int, int], most: tuple[int, int], repeats: int) -> None:
    """Compares the growth of the time with the cells, and the nodes, with a linear one."""

    def time(cells: int, nodes: int) -> float:
        solver = ino.FokkerPlanck(cells=cells, nodes=nodes, dt=0.1, domain=DOMAIN)
        return seconds(lambda _: ino.density(make_config(), solver=solver).pdf, repeats)[0]

    small = time(*least)
    large = (time(most[0], least[1]), time(least[0], most[1]))
    for i, name in enumerate(("cells", "nodes")):
        report(
            f"density, {least[i]} to {most[i]} {name}, vs linear",
            ours=large[i],
            baseline=small * most[i] / least[i],
            unit="s",
            p=None,
            trials=None,
            dtype="float64",
        )


def main(quick: bool = False) -> None:
    with jax.enable_x64(True):
        if quick:
            compare(400, 4, 1, [0.5], [(1e-3, 1e-6)])
        else:
            growth((400, 16), (1600, 64), 5)
            dts = [T / 32, T / 25, T / 23, T / 21, T / 20]
            tolerances = [(1e-2, 1e-5), (1e-3, 1e-5), (1e-3, 1e-6), (1e-4, 1e-6)]
            compare(400, 32, 3, dts, tolerances)


if __name__ == "__main__":
    main(quick="--quick" in sys.argv[1:])
