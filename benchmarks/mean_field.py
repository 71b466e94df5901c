"""Compares `mean_field` on a grid of (tau, omega) with loops over SciPy's `solve_ivp`.

python -m benchmarks.mean_field [--quick]
"""

import sys

import jax
import jax.numpy as jnp
import numpy as np
from scipy.integrate import solve_ivp

import inopca_jax as ino

from .report import report, seconds

TS = np.linspace(0.0, 50.0, 11)
Q0, RTOL, ATOL = 0.1, 1e-8, 1e-10


def right_hand_side(t, state, tau, omega):
    """Returns `(dq/dt, dlam/dt)` of INO-PCA, as in the paper (`eq:Q_t`, `eq:lambda_t`)."""
    q, lam = state
    s2 = omega * q * q + 1
    dq = tau * q / lam * (omega - omega * q * q - tau * s2 / (2 * lam))
    return dq, tau * (s2 - lam + tau * s2 / (2 * lam))


def main(quick: bool = False) -> None:
    side, count, repeats = (5, 4, 1) if quick else (100, 60, 3)
    with jax.enable_x64(True):
        taus, omegas = jnp.linspace(0.05, 1.0, side), jnp.linspace(0.05, 3.0, side)

        def overlap(tau, omega):
            config = ino.Config(
                ino.InoPCA(tau), ino.SpikedModel(omega=omega), ino.WarmStart(Q0), TS
            )
            return ino.mean_field(config, rtol=RTOL, atol=ATOL).q

        grid = jax.jit(jax.vmap(jax.vmap(overlap, (None, 0)), (0, None)))
        overlaps = np.asarray(grid(taus, omegas))
        our_time, compiling = seconds(lambda i: grid(taus, omegas), repeats)

    # SciPy is timed at `count` random points of the grid, and its time scaled to all.
    points = np.random.default_rng(0).integers(0, side, (count, 2))

    def scipy_loop(method):
        return [
            solve_ivp(
                right_hand_side,
                (0, TS[-1]),
                (Q0, 1.0),
                t_eval=TS,
                method=method,
                rtol=RTOL,
                atol=ATOL,
                args=(float(taus[i]), float(omegas[j])),
            ).y[0]
            for i, j in points
        ]

    for method in ("RK45", "DOP853", "LSODA"):
        solutions = np.asarray(scipy_loop(method))
        error = np.max(np.abs(solutions - overlaps[points[:, 0], points[:, 1]]))
        assert error < 1e-5, (method, error)
        scipy_time, _ = seconds(lambda i, method=method: scipy_loop(method), 1)
        report(
            f"mean field, {side} x {side} grid, vs SciPy {method}",
            ours=our_time,
            baseline=scipy_time * side**2 / count,
            unit="s",
            p=10_000,
            trials=None,
            dtype="float64",
            compile_seconds=round(compiling, 2),
        )


if __name__ == "__main__":
    main(quick="--quick" in sys.argv[1:])
