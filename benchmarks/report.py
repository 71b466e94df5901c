"""One JSON line a measurement."""

import importlib.metadata
import json

VERSIONS = {name: importlib.metadata.version(name) for name in ("jax", "numpy", "numba")}


def report(name: str, *, ours: float, baseline: float, **facts) -> None:
    """`ratio` is how many times faster we are than the baseline."""
    numbers = dict(ours=ours, baseline=baseline, ratio=baseline / ours)
    rounded = {key: float(f"{value:.4g}") for key, value in numbers.items()}
    print(json.dumps(dict(name=name) | rounded | facts | VERSIONS), flush=True)
