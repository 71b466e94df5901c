"""Timing, and one JSON line a measurement."""

import importlib.metadata
import json
import time
from collections.abc import Callable

import jax

PACKAGES = ("jax", "numpy", "numba", "scipy", "scikit-learn")
VERSIONS = {name: importlib.metadata.version(name) for name in PACKAGES}


def seconds(run: Callable[[int], object], repeats: int) -> tuple[float, float]:
    """The best time of a warm call, and what the first call took beyond it.

    `run` gets a number that differs from call to call, for a seed.
    """
    times = []
    for i in range(repeats + 1):
        begin = time.perf_counter()
        jax.block_until_ready(run(i))
        times.append(time.perf_counter() - begin)
    best = min(times[1:])
    return best, times[0] - best


def report(name: str, *, ours: float, baseline: float, **facts) -> None:
    """`ratio` is how many times less we need than the baseline."""
    numbers = dict(ours=ours, baseline=baseline, ratio=baseline / ours)
    rounded = {key: float(f"{value:.4g}") for key, value in numbers.items()}
    line = dict(name=name) | rounded | facts | dict(versions=VERSIONS)
    print(json.dumps(line), flush=True)
