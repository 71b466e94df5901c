"""Compares `tune` with SciPy's optimisers over SciPy's ODE solver, with compilation.

python -m benchmarks.tune [--quick]

The first call is timed, with nothing compiled before: that is how long a user who tunes
once has to wait. SciPy approximates gradients by finite differences, with one solution of
the ODE for each number.
"""

import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
from scipy.integrate import solve_ivp
from scipy.optimize import minimize, minimize_scalar

import inopca_jax as ino

from .mean_field import right_hand_side
from .report import report

Q0, OMEGA, END = 0.1, 1.0, 20.0


def timed(run):
    begin = time.perf_counter()
    result = run()
    return result, time.perf_counter() - begin


def scipy_overlap(rate, tolerance=1e-8):
    """Returns the overlap at the last time, given the learning rate as a function."""

    def field(t, state):
        return right_hand_side(t, state, rate(t), OMEGA)

    atol = tolerance / 100
    path = solve_ivp(field, (0, END), (Q0, 1.0), method="LSODA", rtol=tolerance, atol=atol)
    return path.y[0, -1]


def make_config(tau) -> ino.Config:
    start = ino.WarmStart(Q0)
    return ino.Config(ino.InoPCA(tau), start=start, ts=np.array([0.0, END]))


def main(quick: bool = False) -> None:
    jnp.zeros(1).block_until_ready()  # so that JAX is initialised before the clock starts
    tuned, first = timed(lambda: ino.tune(make_config(0.5)))
    _, again = timed(lambda: ino.tune(make_config(0.6)))
    optimum, baseline = timed(
        lambda: minimize_scalar(
            lambda log_tau: -scipy_overlap(lambda t: np.exp(log_tau)),
            bounds=(np.log(0.05), np.log(2.0)),
            method="bounded",
        )
    )
    scipy_value = -optimum.fun  # pyright: ignore
    assert abs(tuned.value - scipy_value) < 1e-6, (tuned.value, scipy_value)
    facts = dict(unit="s", p=10_000, trials=None, dtype="float64")
    name = "tune a constant rate, first call, vs SciPy"
    report(name, ours=first, baseline=baseline, again=round(again, 3), **facts)

    knots = 8 if quick else 32
    flat = ino.Interpolated.flat(0.5, END, knots)
    jax.clear_caches()
    tuned, first = timed(lambda: ino.tune(make_config(flat), over="rule.tau.taus"))
    _, again = timed(lambda: ino.tune(make_config(flat), over="rule.tau.taus"))
    ts, steps = np.asarray(flat.ts), 1 if quick else 5

    def loss(log_taus):
        return -scipy_overlap(lambda t: np.interp(t, ts, np.exp(log_taus)))

    optimum, baseline = timed(
        lambda: minimize(
            loss, np.log(flat.taus), method="L-BFGS-B", options=dict(maxiter=steps)
        )
    )
    scipy_value = -optimum.fun
    assert tuned.value >= scipy_value - 1e-6, (tuned.value, scipy_value)
    report(
        f"tune {knots} knots to the best gain, first call, vs {steps} steps of SciPy",
        ours=first,
        baseline=baseline,
        again=round(again, 3),
        gap=tuned.gap,
        scipy_gap=float(tuned.bound - scipy_value),
        **facts,
    )


if __name__ == "__main__":
    main(quick="--quick" in sys.argv[1:])
