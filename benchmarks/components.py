"""What several components cost: the chain against itself, and against a NumPy loop.

The algorithm is INO-PCA. The result of every program is compared with the mean field before
it is timed. Each measurement is one JSON line, in nanoseconds per step and trial: processor
time of all cores, the least of several calls after the first, which compiles.

    python -m benchmarks.components [--quick]
"""

import math
import sys
import time
from typing import Any

import jax.random as jr
import numpy as np

import inopca_jax as ino

from .report import report

TAU, Q0 = 0.5, 0.3
OMEGAS = (4.0, 3.0, 2.0, 1.0)


def make_config(p: int, steps: int, count: int) -> ino.Config:
    """Returns a config of so many spikes and components."""
    model, start = ino.SpikedModel(p, OMEGAS[:count]), ino.WarmStart(Q0)
    ts = np.array([steps / p])
    return ino.Config(ino.InoPCA(TAU), model, start, ts, components=count)


def chain(p: int, steps: int, trials: int, count: int, seed: int) -> np.ndarray:
    """Returns the overlaps of the components with their own spikes."""
    config = make_config(p, steps, count)
    runs: Any = ino.simulate(config, key=jr.key(seed), trials=trials)
    return np.asarray(runs.q if count == 1 else runs.matched_overlaps()).reshape(trials, -1)


def numpy_loop(p: int, steps: int, trials: int, count: int, seed: int) -> np.ndarray:
    """The p-dimensional algorithm in NumPy: a loop over steps, with the trials as rows."""
    rng = np.random.default_rng(seed)
    basis, _ = np.linalg.qr(rng.standard_normal((trials, p, count), dtype=np.float32))
    xi = np.sqrt(np.float32(p)) * basis.transpose(2, 0, 1)
    xs = Q0 * xi + math.sqrt(1 - Q0**2) * rng.standard_normal(xi.shape, dtype=np.float32)
    xs *= np.sqrt(p) / np.linalg.norm(xs, axis=-1, keepdims=True)
    inner = lambda a, b: np.einsum("ij,ij->i", a, b)[:, None]
    for _ in range(steps):
        y = rng.standard_normal((trials, p), dtype=np.float32)
        for omega, spike in zip(OMEGAS, xi, strict=False):
            c = rng.standard_normal((trials, 1), dtype=np.float32)
            y += math.sqrt(omega / p) * c * spike
        for i, x in enumerate(xs):
            lam = np.linalg.norm(x, axis=1, keepdims=True) / math.sqrt(p)
            x += TAU / p * (inner(y, x) / lam * y - x)
            if i < count - 1:
                y -= inner(y, x) / inner(x, x) * x
    norms = np.linalg.norm(xs, axis=-1)
    return (np.einsum("ijk,ijk->ij", xs, xi) / norms / math.sqrt(p)).T


def check(run, count: int) -> None:
    """Checks the mean overlaps against the mean field, up to Monte Carlo error and 1/p."""
    p, steps, trials = 300, 300, 100
    found = run(p, steps, trials, count, 1)
    ode: Any = ino.mean_field(make_config(p, steps, count))
    expected = np.asarray(ode.q if count == 1 else ode.matched_overlaps()).reshape(-1)
    error = np.abs(found.mean(axis=0) - expected)
    assert np.all(error < 5 * found.std(axis=0, ddof=1) / trials**0.5 + 10 / p), error


def cost(run, p: int, steps: int, trials: int, count: int, repeats: int) -> float:
    """Returns the nanoseconds of processor time of a step and trial."""
    times = []
    for seed in range(repeats + 1):
        begin = time.process_time()
        run(p, steps, trials, count, seed)
        times.append(time.process_time() - begin)
    return min(times[1:]) / (steps * trials) * 1e9


def main(quick: bool = False) -> None:
    shrink, repeats = (20, 1) if quick else (1, 2)
    for run in (chain, numpy_loop):
        check(run, 4)
    check(chain, 1)
    p, steps, trials = 10_000, 2000 // shrink, 1024 // shrink
    facts = dict(unit="ns of processor time per step and trial", dtype="float64")
    four = cost(chain, p, steps, trials, 4, repeats)
    one = cost(chain, p, steps, trials, 1, repeats)
    named = dict(p=p, trials=trials, **facts)
    report("chain, 4 components vs 1 component", ours=four, baseline=one, **named)
    for other in (1000, 1_000_000):
        far = cost(chain, other, steps, trials, 4, repeats)
        named = dict(p=other, trials=trials, **facts)
        report("chain, 4 components vs at p = 10,000", ours=far, baseline=four, **named)
    few = 4 if quick else 20
    chain_of_few = cost(chain, p, 5 * steps, few, 4, repeats)
    loop = cost(numpy_loop, p, 100 // shrink, few, 4, repeats)
    facts |= dict(dtype="float32 (chain: float64)")
    named = dict(p=p, trials=few, **facts)
    name = "chain vs NumPy p-dimensional loop, 4 components"
    report(name, ours=chain_of_few, baseline=loop, **named)
    report(f"{name}, 1,024 trials of the chain", ours=four, baseline=loop, **named)


if __name__ == "__main__":
    main(quick="--quick" in sys.argv[1:])
