"""Tuning against SciPy's optimisers over its own ODE solver, compilation included.

python -m benchmarks.tune [--quick]

A first call is timed, in a process that has compiled nothing: what somebody waits for who
tunes once. SciPy has no derivative but differences, a solution for each number.
"""

import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
from scipy.integrate import solve_ivp
from scipy.optimize import minimize, minimize_scalar

import inopca_jax as ino

from .mean_field import paper
from .report import report

Q0, OMEGA, END = 0.1, 1.0, 20.0


def timed(run):
    begin = time.perf_counter()
    result = run()
    return result, time.perf_counter() - begin


def overlap(rate, tolerance=1e-8):
    def field(t, state):
        return paper(t, state, rate(t), OMEGA)

    atol = tolerance / 100
    run = solve_ivp(field, (0, END), (Q0, 1.0), method="LSODA", rtol=tolerance, atol=atol)
    return run.y[0, -1]


def study(tau):
    start = ino.WarmStart(Q0)
    return ino.Config(ino.InoPCA(tau), start=start, ts=np.array([0.0, END]))


def main(quick: bool = False) -> None:
    jnp.zeros(1).block_until_ready()  # JAX's own beginning is nobody's tuning
    ours, first = timed(lambda: ino.tune(study(0.5)))
    _, again = timed(lambda: ino.tune(study(0.6)))
    found, baseline = timed(
        lambda: minimize_scalar(
            lambda log_tau: -overlap(lambda t: np.exp(log_tau)),
            bounds=(np.log(0.05), np.log(2.0)),
            method="bounded",
        )
    )
    theirs = found.fun  # pyright: ignore
    assert abs(ours.value + theirs) < 1e-6, (ours.value, theirs)
    facts = dict(unit="s", p=10_000, trials=None, dtype="float64")
    name = "tune a constant rate, first call, vs SciPy"
    report(name, ours=first, baseline=baseline, again=round(again, 3), **facts)

    knots = 8 if quick else 32
    flat = ino.Interpolated.flat(0.5, END, knots)
    jax.clear_caches()
    ours, first = timed(lambda: ino.tune(study(flat), over="rule.tau.taus"))
    _, again = timed(lambda: ino.tune(study(flat), over="rule.tau.taus"))
    ts, most = np.asarray(flat.ts), 1 if quick else 5

    def loss(logs):
        return -overlap(lambda t: np.interp(t, ts, np.exp(logs)))

    theirs, baseline = timed(
        lambda: (
            minimize(
                loss, np.log(flat.taus), method="L-BFGS-B", options=dict(maxiter=most)
            ).fun
        )
    )
    assert ours.value >= -theirs - 1e-6, (ours.value, theirs)
    name = f"tune {knots} knots to the best gain, first call, vs {most} steps of SciPy"
    report(
        name,
        ours=first,
        baseline=baseline,
        again=round(again, 3),
        gap=ours.gap,
        scipy_gap=float(ours.bound + theirs),
        **facts,
    )


if __name__ == "__main__":
    main(quick="--quick" in sys.argv[1:])
