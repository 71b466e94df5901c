"""Compares the cost of the chain with `SelfTuning` with that of a constant rate.

python -m benchmarks.self_tuning [--quick]

The numbers are CPU time, of runs that take turns: other processes disturb them little.
"""

import sys
import time

import jax.random as jr
import numpy as np

import inopca_jax as ino

from .report import report


def cpu_time(rule: ino.AbstractRule, seed: int, end: float, trials: int) -> float:
    """Returns the CPU time of a simulation in ns for each step and trial."""
    p = 10_000
    config = ino.Config(rule, ino.SpikedModel(p=p), ino.ColdStart(), ts=[end])
    begin = time.process_time()
    runs = ino.simulate(config, key=jr.key(seed), trials=trials)
    assert bool(np.all(runs.finite))
    return (time.process_time() - begin) / (p * end * trials) * 1e9


def main(quick: bool = False) -> None:
    end, trials, repeats = (0.1, 8, 1) if quick else (20.0, 512, 5)
    rules = ino.InoPCA(ino.SelfTuning()), ino.InoPCA(0.5)
    times = [[cpu_time(rule, i, end, trials) for rule in rules] for i in range(repeats + 1)]
    ours, baseline = np.min(times[1:], axis=0)  # the first compiles
    facts = dict(p=10_000, trials=trials, dtype="float64", unit="ns per step")
    name = "chain with SelfTuning vs constant rate"
    report(name, ours=float(ours), baseline=float(baseline), **facts)


if __name__ == "__main__":
    main(quick="--quick" in sys.argv[1:])
