"""Several components of a stream against a NumPy loop and scikit-learn's IncrementalPCA.

python -m benchmarks.real_data [--quick]

The loop is CCIPCA as one would write it, in the same precision, a sample and a component at
a time. IncrementalPCA takes the singular values of each batch and what it had: it is the
more accurate for the same samples, so the time is that until the distance is ours.
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
    """The published update, with `n` counted as ours is and vectors that begin as ours."""
    vectors, p = [], samples.shape[1]
    for k, y in enumerate(samples, start=1):
        y = y.copy()
        weight = samples.dtype.type((1 + amnesic) / (k + amnesic))
        for i in range(min(components, k)):
            if i == k - 1:
                vectors.append(y / samples.dtype.type(p**0.5))
            else:
                v = vectors[i]
                pull = weight * (y @ v) / np.sqrt(v @ v)
                vectors[i] = (1 - weight) * v + pull * y
            v = vectors[i]
            y -= (y @ v) / (v @ v) * v
    return np.array(vectors)


def distance(a, b):
    return float(ino.grassmann_distance(np.asarray(a, np.float32), b.astype(np.float32)))


def timed(run):
    time.sleep(0.3)  # BLAS threads of the other side spin for a while after their work
    begin = time.perf_counter()
    result = jax.block_until_ready(run())
    return result, time.perf_counter() - begin


def main(quick: bool = False) -> None:
    p, r, n, few, rounds = (256, 4, 640, 128, 1) if quick else (4096, 16, 8192, 256, 5)
    stream = data.Drift(np.linspace(p / 16, p / 64, r).tolist(), p=p)
    y, truth = np.concatenate(list(stream.samples(n))), stream.basis(0)

    def ours(samples=y):
        return ino.stream_pca(RULE, samples, r).now().vectors

    def loop(samples=y[:few]):
        return numpy_loop(samples, r)

    # Not the distance of the two: at this p the first samples send two roundings apart.
    one, other = (distance(found(y[:few]), truth) for found in (ours, loop))
    assert abs(one - other) < 0.1 * other, (one, other)
    found, rates = ours(), []
    for _ in range(rounds):
        found, mine = timed(ours)
        _, theirs = timed(loop)
        rates.append((mine / n, theirs / few))
    facts = dict(unit="us/sample", p=p, trials=None, dtype="float32", components=r)
    mine, theirs = 1e6 * np.median(rates, axis=0)
    name = "components of a stream vs NumPy loop"
    report(name, ours=mine, baseline=theirs, **facts)

    reached, model, spent, seen = distance(found, truth), IncrementalPCA(r), 0.0, 0
    for begin in range(0, n, 64):
        _, took = timed(lambda begin=begin: model.partial_fit(y[begin : begin + 64]))
        spent, seen = spent + took, begin + 64
        if distance(model.components_, truth) <= reached:
            break
    report(
        "components of a stream vs IncrementalPCA, time to the same distance",
        ours=mine * n / 1e6,
        baseline=spent,
        **(facts | dict(unit="s")),
        distance=round(reached, 3),
        samples=n,
        baseline_samples=seen,
        baseline_us_per_sample=round(1e6 * spent / seen, 1),
    )
    short, long = (peak(p, r, count * n) for count in (1, 2 if quick else 8))
    assert long < 1.05 * short, (short, long)
    name = "components of a stream, peak memory, eight times the samples"
    report(name, ours=long, baseline=short, **(facts | dict(unit="MiB")))


def peak(p: int, r: int, n: int) -> float:
    """In a process of its own, fed by an iterator."""
    code = f"from benchmarks.real_data import feed; feed({p}, {r}, {n})"
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True)
    return float(done.stdout.split()[-1])


def feed(p: int, r: int, n: int) -> None:
    rows = np.random.default_rng(0).standard_normal((256, p), np.float32)
    ino.stream_pca(RULE, (rows for _ in range(n // len(rows))), r).now()
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10)


if __name__ == "__main__":
    main(quick="--quick" in sys.argv[1:])
