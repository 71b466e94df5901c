"""Compares the chain and the stream with the same algorithm in NumPy and in Numba.

The algorithm is INO-PCA with the paper's defaults. The result of every program is compared
with the mean field before it is timed. Each measurement is one JSON line, in nanoseconds
per step and trial: the shortest of several calls after the first, which compiles.

    python -m benchmarks.engines [--quick]
"""

import math
import sys

import jax.random as jr
import numba
import numpy as np
from sklearn.decomposition import IncrementalPCA

import inopca_jax as ino

from .report import report, seconds

TAU, OMEGA, Q0 = 0.5, 1.0, 0.3


def numpy_stream(p, steps, trials, seed):
    """The p-dimensional algorithm in NumPy: a loop over steps, with the trials as rows."""
    rng = np.random.default_rng(seed)
    xi = rng.uniform(-1, 1, (trials, p)).astype(np.float32)
    xi *= np.sqrt(p) / np.linalg.norm(xi, axis=1, keepdims=True)
    z = rng.standard_normal((trials, p), dtype=np.float32)
    x = Q0 * xi + math.sqrt(1 - Q0**2) * z
    x *= np.sqrt(p) / np.linalg.norm(x, axis=1, keepdims=True)
    for _ in range(steps):
        c = rng.standard_normal((trials, 1), dtype=np.float32)
        y = rng.standard_normal((trials, p), dtype=np.float32)
        y += math.sqrt(OMEGA / p) * c * xi
        yx = np.einsum("ij,ij->i", y, x)[:, None]
        lam = np.linalg.norm(x, axis=1, keepdims=True) / math.sqrt(p)
        x += TAU / p * (yx / lam * y - x)
    return np.einsum("ij,ij->i", x, xi) / np.linalg.norm(x, axis=1) / math.sqrt(p)


def numpy_chain(p, steps, trials, seed):
    """The chain in NumPy: a loop over steps, with the trials as entries."""
    rng = np.random.default_rng(seed)
    u = Q0 + math.sqrt((1 - Q0**2) / p) * rng.standard_normal(trials)
    w = np.sqrt((1 - Q0**2) / p * rng.chisquare(p - 1, trials))
    scale = 1 / np.hypot(u, w)
    u, w = u * scale, w * scale
    for _ in range(steps):
        y_u = math.sqrt(1 + OMEGA) * rng.standard_normal(trials)
        y_w = rng.standard_normal(trials)
        rest = rng.chisquare(p - 2, trials)
        gain = TAU / np.hypot(u, w) * (u * y_u + w * y_w) / p
        keep = 1 - TAU / p
        u = keep * u + gain * y_u
        w = np.sqrt((keep * w + gain * y_w) ** 2 + gain**2 * rest)
    return u / np.hypot(u, w)


@numba.njit(parallel=True, fastmath=True)
def numba_stream(p, steps, trials, seed):
    """The p-dimensional algorithm in Numba: trials in parallel, loops over entries."""
    out = np.empty(trials)
    for trial in numba.prange(trials):
        np.random.seed(seed + trial)
        xi, x, y = np.empty(p, np.float32), np.empty(p, np.float32), np.empty(p, np.float32)
        norm = 0.0
        for i in range(p):
            xi[i] = np.random.uniform(-1, 1)
            norm += xi[i] ** 2
        xi *= np.float32(math.sqrt(p / norm))
        norm = 0.0
        for i in range(p):
            x[i] = Q0 * xi[i] + math.sqrt(1 - Q0**2) * np.random.normal()
            norm += x[i] ** 2
        x *= np.float32(math.sqrt(p / norm))
        for _ in range(steps):
            c = math.sqrt(OMEGA / p) * np.random.normal()
            yx, xx = np.float32(0), np.float32(0)
            for i in range(p):
                y[i] = c * xi[i] + np.random.normal()
                yx += y[i] * x[i]
                xx += x[i] * x[i]
            lam = math.sqrt(xx / p)
            keep, gain = np.float32(1 - TAU / p), np.float32(TAU / p * yx / lam)
            for i in range(p):
                x[i] = keep * x[i] + gain * y[i]
        xx, overlap = 0.0, 0.0
        for i in range(p):
            xx += x[i] * x[i]
            overlap += x[i] * xi[i]
        out[trial] = overlap / math.sqrt(p * xx)
    return out


@numba.njit(parallel=True, fastmath=True)
def numba_chain(p, steps, trials, seed):
    """The chain in Numba: trials in parallel."""
    out = np.empty(trials)
    for trial in numba.prange(trials):
        np.random.seed(seed + trial)
        u = Q0 + math.sqrt((1 - Q0**2) / p) * np.random.normal()
        w = math.sqrt((1 - Q0**2) / p * np.random.chisquare(p - 1))
        scale = 1 / math.sqrt(u * u + w * w)
        u, w = u * scale, w * scale
        for _ in range(steps):
            y_u = math.sqrt(1 + OMEGA) * np.random.normal()
            y_w = np.random.normal()
            rest = np.random.chisquare(p - 2)
            lam = math.sqrt(u * u + w * w)
            gain, keep = TAU / lam * (u * y_u + w * y_w) / p, 1 - TAU / p
            u = keep * u + gain * y_u
            w = math.sqrt((keep * w + gain * y_w) ** 2 + gain * gain * rest)
        out[trial] = u / math.sqrt(u * u + w * w)
    return out


def make_config(p: int, steps: int) -> ino.Config:
    model, start = ino.SpikedModel(p, OMEGA), ino.WarmStart(Q0)
    return ino.Config(ino.InoPCA(TAU), model, start, np.array([steps / p]))


def simulated(engine):
    """Returns the simulation by an engine, as a function like those above."""

    def run(p, steps, trials, seed):
        config = make_config(p, steps)
        runs = ino.simulate(config, key=jr.key(seed), trials=trials, engine=engine)
        return np.asarray(runs.q[:, 0])

    return run


def check(run, p, steps, trials):
    """Checks that the mean overlap is the mean field's, up to Monte Carlo error and 1/p."""
    q = run(p, steps, trials, 1)
    error = abs(q.mean() - float(ino.mean_field(make_config(p, steps)).q[0]))
    assert error < 5 * q.std(ddof=1) / math.sqrt(trials) + 10 / p, (error, p, trials)


def sklearn_stream(p, steps, trials, seed):
    """The first component by scikit-learn's IncrementalPCA, on batches of 50 samples."""
    out = np.empty(trials)
    for trial in range(trials):
        rng = np.random.default_rng(seed + trial)
        xi = rng.uniform(-1, 1, p).astype(np.float32)
        xi *= np.sqrt(p) / np.linalg.norm(xi)
        model = IncrementalPCA(n_components=1)
        for _ in range(max(1, steps // 50)):
            c = rng.standard_normal((50, 1), dtype=np.float32)
            y = rng.standard_normal((50, p), dtype=np.float32)
            model.partial_fit(y + math.sqrt(OMEGA / p) * c * xi)
        out[trial] = abs(model.components_[0] @ xi) / math.sqrt(p)  # pyright: ignore
    return out


def main(quick: bool = False) -> None:
    shrink = 20 if quick else 1
    repeats = 1 if quick else 3
    chain, stream = simulated(ino.Chain()), simulated(ino.Stream())
    for run in (chain, numba_chain, numpy_chain):
        check(run, 300, 600, 400)
    for run in (stream, numba_stream, numpy_stream):
        check(run, 300, 600, 100)
    # IncrementalPCA has no initial overlap, and so no mean field to be compared with.
    assert sklearn_stream(100, 2000, 8, 1).mean() > 0.4

    def compare(name, ours, our_steps, baselines, p, trials):
        our_time, compiling = seconds(lambda i: ours(p, our_steps, trials, i), repeats)
        for label, run, steps in baselines:
            time, _ = seconds(lambda i, run=run, n=steps: run(p, n, trials, i), repeats)
            report(
                f"{name} vs {label}",
                ours=our_time / (our_steps * trials) * 1e9,
                baseline=time / (steps * trials) * 1e9,
                unit="ns per step and trial",
                p=p,
                trials=trials,
                dtype="float32 (chain: float64)",
                compile_seconds=round(compiling, 2),
            )

    p, few_steps = 10_000 // shrink, 200 // shrink
    numpy_loop = ("NumPy p-dimensional loop", numpy_stream, few_steps)
    loops = [
        numpy_loop,
        ("Numba prange p-dimensional loop", numba_stream, few_steps),
        ("scikit-learn IncrementalPCA", sklearn_stream, 50),
    ]
    steps = 600 // shrink
    compare("stream", stream, steps, loops, p, 20)
    blocks = ("the stream in blocks of 16", simulated(ino.Stream(block=16)), steps)
    compare("stream", stream, steps, [blocks], p, 20)
    compare("chain", chain, 50 * p, [numpy_loop], p, 20)
    chain_loops = [
        ("NumPy loop of the chain", numpy_chain, p // 4),
        ("Numba prange loop of the chain", numba_chain, p),
    ]
    compare("chain", chain, p, chain_loops, p, 1024 // shrink)
    compare("chain", chain, 50 * p, chain_loops, p, 20)


if __name__ == "__main__":
    main(quick="--quick" in sys.argv[1:])
