"""Compares `stream_pca` with a NumPy loop and with scikit-learn's IncrementalPCA.

python -m benchmarks.real_data [--quick]

The loop is CCIPCA in the same precision, one sample and one component at a time.
IncrementalPCA decomposes each batch together with its present components. For the same
samples it is the more accurate, so it is timed until its distance from the truth is ours.
"""

import resource
import subprocess
import sys
import time

import jax
import numpy as np
from sklearn.decomposition import IncrementalPCA

import inopca_jax as ino
from inopca_jax import data

from .report import report

AMNESIC = 2.0
RULE = ino.CCIPCA(AMNESIC)


def numpy_loop(samples, components, amnesic=AMNESIC):
    """CCIPCA as published, with the count of samples and the first vectors of
    `stream_pca`."""
    vectors, p = [], samples.shape[1]
    for k, y in enumerate(samples, start=1):
        y = y.copy()
        weight = samples.dtype.type((1 + amnesic) / (k + amnesic))
        for i in range(min(components, k)):
            if i == k - 1:
                vectors.append(y / samples.dtype.type(p**0.5))
            else:
                v = vectors[i]
                coefficient = weight * (y @ v) / np.sqrt(v @ v)
                vectors[i] = (1 - weight) * v + coefficient * y
            v = vectors[i]
            y -= (y @ v) / (v @ v) * v
    return np.array(vectors)


def distance(a, b):
    return float(ino.grassmann_distance(np.asarray(a, np.float32), b.astype(np.float32)))


def timed(run):
    time.sleep(0.3)  # BLAS threads keep a core busy for a while after their work
    begin = time.perf_counter()
    result = jax.block_until_ready(run())
    return result, time.perf_counter() - begin


def main(quick: bool = False) -> None:
    p, r, n, loop_samples, rounds = (
        (256, 4, 640, 128, 1) if quick else (4096, 16, 8192, 256, 5)
    )
    stream = data.Drift(np.linspace(p / 16, p / 64, r).tolist(), p=p)
    y, truth = np.concatenate(list(stream.samples(n))), stream.basis(0)

    def ours(samples=y):
        return ino.stream_pca(RULE, samples, r).now().vectors

    def loop(samples=y[:loop_samples]):
        return numpy_loop(samples, r)

    # Their distances from the truth are compared, and not the estimates themselves: at this
    # p, differences by rounding at the first samples grow.
    ours_first, loop_first = (distance(f(y[:loop_samples]), truth) for f in (ours, loop))
    assert abs(ours_first - loop_first) < 0.1 * loop_first, (ours_first, loop_first)
    vectors, times = ours(), []
    for _ in range(rounds):
        vectors, our_time = timed(ours)
        _, loop_time = timed(loop)
        times.append((our_time / n, loop_time / loop_samples))
    facts = dict(unit="us/sample", p=p, trials=None, dtype="float32", components=r)
    our_time, loop_time = 1e6 * np.median(times, axis=0)
    name = "components of a stream vs NumPy loop"
    report(name, ours=our_time, baseline=loop_time, **facts)

    our_distance, model = distance(vectors, truth), IncrementalPCA(r)
    total, count = 0.0, 0
    for begin in range(0, n, 64):
        _, duration = timed(lambda begin=begin: model.partial_fit(y[begin : begin + 64]))
        total, count = total + duration, begin + 64
        if distance(model.components_, truth) <= our_distance:
            break
    report(
        "components of a stream vs IncrementalPCA, time to the same distance",
        ours=our_time * n / 1e6,
        baseline=total,
        **(facts | dict(unit="s")),
        distance=round(our_distance, 3),
        samples=n,
        baseline_samples=count,
        baseline_us_per_sample=round(1e6 * total / count, 1),
    )
    short, long = (peak_memory(p, r, times * n) for times in (1, 2 if quick else 8))
    assert long < 1.05 * short, (short, long)
    name = "components of a stream, peak memory, eight times the samples"
    report(name, ours=long, baseline=short, **(facts | dict(unit="MiB")))


def peak_memory(p: int, r: int, n: int) -> float:
    """Returns the peak memory in MiB of a process that reads `n` samples."""
    code = f"from benchmarks.real_data import read_stream; read_stream({p}, {r}, {n})"
    command = [sys.executable, "-c", code]
    process = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    return float(process.stdout.split()[-1])


def read_stream(p: int, r: int, n: int) -> None:
    """Runs `stream_pca` over an iterator, and prints the peak memory in MiB."""
    rows = np.random.default_rng(0).standard_normal((256, p), np.float32)
    ino.stream_pca(RULE, (rows for _ in range(n // len(rows))), r).now()
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10)


if __name__ == "__main__":
    main(quick="--quick" in sys.argv[1:])
