"""One JSON line a measurement."""

import importlib.metadata
import json

VERSIONS = {name: importlib.metadata.version(name) for name in ("jax", "numpy", "numba")}


def report(name: str, *, ours: float, baseline: float, **facts) -> None:
    """`ratio` is how many times faster we are than the baseline."""
    line = dict(name=name, ours=ours, baseline=baseline, ratio=baseline / ours)
    line = {
        key: float(f"{value:.4g}") if value != name else value
        for key, value in line.items()
    }
    print(json.dumps(line | facts | VERSIONS), flush=True)
