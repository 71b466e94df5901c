"""Compares `StreamingPCA` with other algorithms, written plainly, on one pass of data.

python -m benchmarks.streaming [--quick | --table]

For each data set and number of components: the variance that the result captures, over that
of offline PCA; its Grassmann distance from offline PCA; and the CPU time. On streams that
change, the distance from the truth after the change. With `--table` the tables of
`docs/guide/streaming.md` are printed.
"""

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.decomposition import PCA, IncrementalPCA

import inopca_jax as ino
from inopca_jax import data

from .report import report

BATCH = 64
ROUNDS = 3


def ccipca_loop(X, k, amnesic=2.0):
    """Candid covariance-free incremental PCA, a sample and a component at a time."""
    mean, V = X[0].copy(), []
    for n, x in enumerate(X[1:], start=1):
        y = (x - mean) * np.float32((n / (n + 1)) ** 0.5)
        mean += (x - mean) / np.float32(n + 1)
        w = np.float32((1 + amnesic) / (n + amnesic))
        for i in range(min(k, n)):
            if i == n - 1:
                V.append(y.copy())
            else:
                V[i] = (1 - w) * V[i] + (w * (y @ V[i]) / np.sqrt(V[i] @ V[i])) * y
            y -= (y @ V[i]) / (V[i] @ V[i]) * V[i]
    return np.array(V)


def centred_blocks(X, size):
    """The samples of each block minus the mean of all samples up to its end."""
    total = np.zeros(X.shape[1])
    for begin in range(0, len(X), size):
        block = X[begin : begin + size]
        total += block.sum(axis=0)
        yield block - (total / (begin + len(block))).astype(X.dtype)


def frequent_directions(X, k):
    """A sketch of 2k rows (Liberty 2013), emptied from the 2k-th singular value on when it
    has filled a buffer of twice the size."""
    rows, V = 2 * k, X[:0]
    B = np.zeros((0, X.shape[1]), X.dtype)
    for block in centred_blocks(X, rows):
        _, s, V = np.linalg.svd(np.concatenate([B, block]), full_matrices=False)
        s, V = s[:rows], V[:rows]
        shrunk = np.sqrt(np.maximum(s**2 - s[-1] ** 2, 0)) if len(s) == rows else s
        B = shrunk[:, None] * V
    return V[:k]


def streaming_power(X, k):
    """One step of the power method on each of 16 blocks (Mitliagkas, Caramanis and Jain
    2013)."""
    Q = np.linalg.qr(np.random.default_rng(0).standard_normal((X.shape[1], k)))[0]
    Q = Q.astype(X.dtype)
    for block in centred_blocks(X, max(2 * k, len(X) // 16)):
        Q = np.linalg.qr(block.T @ (block @ Q))[0]
    return Q.T


def by_batches(model, X):
    for begin in range(0, len(X), BATCH):
        model.partial_fit(X[begin : begin + BATCH])
    return model.components_


def incremental_pca(X, k):
    whole = X[: len(X) // BATCH * BATCH]  # it refuses a last batch of less than k
    return by_batches(IncrementalPCA(k), whole)


METHODS: dict[str, Callable[[Any, int], Any]] = {
    "Sketch (default)": lambda X, k: ino.StreamingPCA(k).fit(X).components_,
    "INO-PCA": lambda X, k: ino.StreamingPCA(k, rule=ino.InoPCA).fit(X).components_,
    "CCIPCA": lambda X, k: ino.StreamingPCA(k, rule=ino.CCIPCA).fit(X).components_,
    "IncrementalPCA": incremental_pca,
    "CCIPCA, NumPy": ccipca_loop,
    "Frequent Directions": frequent_directions,
    "Power method": streaming_power,
}


def spectrum(n, p=784, power=1.2):
    """Samples with eigenvalues `i^-power` and a mean that is not zero."""
    random = np.random.default_rng(0)
    basis, _ = np.linalg.qr(random.standard_normal((p, p)))
    scaled = random.standard_normal((n, p)) * np.arange(1, p + 1) ** (-power / 2)
    return (scaled @ basis.T + random.standard_normal(p)).astype(np.float32)


def distance(a, b):
    a, b = (np.asarray(rows, np.float32) for rows in (a, b))
    return float(ino.grassmann_distance(a, b))


def compared(X, k, methods=METHODS, rounds=ROUNDS):
    """Captured variance, distance and CPU time of each method, interleaved."""
    truth = PCA(k, svd_solver="full").fit(X.astype(float))
    covariance = np.cov(X.T.astype(float))
    captured = lambda V: np.trace(V @ covariance @ V.T) / np.sum(truth.explained_variance_)
    times = {name: [] for name in methods}
    quality = {}
    for i in range(rounds):
        for name, run in methods.items():
            if i and name == "CCIPCA, NumPy":  # slow, and no compilation to leave out
                continue
            begin = time.process_time()
            found = run(X, k)
            times[name].append(time.process_time() - begin)
            V = np.linalg.qr(np.asarray(found, float).T)[0].T
            quality[name] = captured(V), distance(V, truth.components_)
    return {name: (*quality[name], min(times[name]) / len(X)) for name in methods}


def after_changes(models, stream, k, count, jump=None, offset=0.0, every=100):
    """The distance of each model at multiples of `every` samples."""
    distances = {name: {} for name in models}
    for n, rows in enumerate(stream.samples(count, chunk=every)):
        moved = rows + np.float32(offset if jump is not None and n * every >= jump else 0)
        truth = stream.basis((n + 1) * every - 1)
        for name, model in models.items():
            model.partial_fit(moved)
            distances[name][(n + 1) * every] = distance(model.components_[:k], truth)
    return distances


EIGENVALUES = [40.0, 30.0, 20.0, 15.0]
MEMORY = 300


def changes(quick=False):
    """Distances before and after a jump of the subspace, and one of the mean by 1 in every
    feature."""
    p, jump, k = 256, 3_000, 4
    found = {}
    for what in ("subspace", "mean"):
        jumps = [jump] if what == "subspace" else []
        stream = data.Drift(EIGENVALUES, p=p, jumps=jumps, seed=1)
        models = {
            f"Sketch, memory {MEMORY}": ino.StreamingPCA(k, memory=MEMORY),
            "Sketch (default)": ino.StreamingPCA(k),
            "INO-PCA": ino.StreamingPCA(k, rule=ino.InoPCA),
            "Oja": ino.StreamingPCA(k, rule=ino.Oja),
            "IncrementalPCA": IncrementalPCA(k),
        }
        offset = 1.0 if what == "mean" else 0.0
        count = jump + (600 if quick else 2_000)
        found[what] = after_changes(models, stream, k, count, jump, offset)
    return found


def latency(count):
    """Median seconds of `partial_fit` and of `transform` of one sample, p = 64."""
    X, found = data.digits(), {}
    for name, model in (
        ("Sketch (default)", ino.StreamingPCA(2)),
        ("INO-PCA", ino.StreamingPCA(2, rule=ino.InoPCA)),
        ("IncrementalPCA", IncrementalPCA(2)),
    ):
        model.partial_fit(X[:200]).transform(X[:1])
        times = []
        for i in range(200, 200 + count):
            begin = time.perf_counter()
            model.partial_fit(X[i : i + 1])
            middle = time.perf_counter()
            model.transform(X[i : i + 1])
            times.append((middle - begin, time.perf_counter() - middle))
        found[name] = np.median(times, axis=0)
    return found


def cells(quick):
    shuffled = np.random.default_rng(0).permutation(data.digits())
    sets = {"digits": shuffled, "power law": spectrum(1_000 if quick else 6_000)}
    for name, X in sets.items():
        for k in (5,) if quick else (5, 16, 50):
            yield name, k, X, compared(X, k, rounds=2 if quick else ROUNDS)


def main(quick: bool = False) -> None:
    facts = dict(trials=None, dtype="float32")
    for name, k, X, rows in cells(quick):
        best, theirs = rows["Sketch (default)"], rows["IncrementalPCA"]
        assert best[0] >= theirs[0], (name, k, rows)
        assert best[1] <= rows["CCIPCA, NumPy"][1], (name, k, rows)
        report(
            f"StreamingPCA vs IncrementalPCA, CPU time, {name}, {k} components",
            ours=1e6 * best[2],
            baseline=1e6 * theirs[2],
            **(facts | dict(unit="us/sample", p=X.shape[1], components=k)),
            captured={method: round(row[0], 5) for method, row in rows.items()},
            distance={method: round(row[1], 3) for method, row in rows.items()},
            us_per_sample={method: round(1e6 * row[2], 1) for method, row in rows.items()},
        )
    for what, distances in changes(quick).items():
        memory = distances[f"Sketch, memory {MEMORY}"]
        late = {
            n: d for n, d in memory.items() if n >= (3_600 if what != "mean" else 3_400)
        }
        assert max(late.values()) < 0.45, late
        report(
            f"StreamingPCA vs IncrementalPCA, distance 600 samples after a jump, {what}",
            ours=memory[3_600],
            baseline=distances["IncrementalPCA"][3_600],
            **(facts | dict(p=256, components=4)),
            after_600={name: round(found[3_600], 3) for name, found in distances.items()},
        )


def tables() -> None:
    print("| data | k | " + " | ".join(METHODS) + " |")
    print("| --- " * (len(METHODS) + 2) + "|")
    for name, k, _, rows in cells(False):
        texts = [
            f"{100 * captured:.2f}, {apart:.2f}, {1e6 * seconds:.0f}"
            for captured, apart, seconds in rows.values()
        ]
        print(f"| {name} | {k} | " + " | ".join(texts) + " |", flush=True)
    for what, distances in changes().items():
        moments = (3_000, 3_200, 3_400, 3_600, 4_000, 5_000)
        print(
            f"\n| jump of the {what} | "
            + " | ".join(str(n - 3_000) for n in moments)
            + " |"
        )
        print("| --- " * (len(moments) + 1) + "|")
        for name, found in distances.items():
            print(f"| {name} | " + " | ".join(f"{found[n]:.2f}" for n in moments) + " |")
    for name, (fit, transform) in latency(1_000).items():
        print(f"{name}: {1e3 * fit:.2f} ms, {1e3 * transform:.2f} ms")


if __name__ == "__main__":
    tables() if "--table" in sys.argv[1:] else main(quick="--quick" in sys.argv[1:])
