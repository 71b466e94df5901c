"""Measures times, and prints one JSON line per measurement."""

import importlib.metadata
import json
import time
from collections.abc import Callable

import jax

PACKAGES = ("jax", "numpy", "numba", "scipy", "scikit-learn")
VERSIONS = {name: importlib.metadata.version(name) for name in PACKAGES}


def seconds(run: Callable[[int], object], repeats: int) -> tuple[float, float]:
    """Returns the shortest time of a call after the first, and the time by which the first
    call exceeds it, which is about that of compilation.

    **Arguments:**

    - `run`: what to measure. Its argument is the number of the call, to be used as a seed.
    - `repeats`: how many calls to make after the first.
    """
    times = []
    for i in range(repeats + 1):
        begin = time.perf_counter()
        jax.block_until_ready(run(i))
        times.append(time.perf_counter() - begin)
    best = min(times[1:])
    return best, times[0] - best


def report(name: str, *, ours: float, baseline: float, **facts) -> None:
    """Prints a measurement. Its `ratio` is `baseline / ours`: above 1 is in our favour."""
    numbers = dict(ours=ours, baseline=baseline, ratio=baseline / ours)
    rounded = {key: float(f"{value:.4g}") for key, value in numbers.items()}
    line = dict(name=name) | rounded | facts | dict(versions=VERSIONS)
    print(json.dumps(line), flush=True)
