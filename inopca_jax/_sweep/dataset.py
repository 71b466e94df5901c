"""A sweep's results as labelled arrays."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from .._check import Checked, require_path
from .statistics import OBSERVED, QUANTILES
from .store import Store


def open_sweep(path: Checked[str | Path]) -> Any:
    """The results in a store as an `xarray.Dataset`: the grid's axes and the time are
    dimensions with coordinates; cells that are not finished are not a number, and `done`
    says which are. Several names that vary together are one dimension, with a coordinate
    for each."""
    path = require_path("path", path)
    if not path.exists():
        raise ValueError(f"path = {path} does not exist: pass a sweep's store.")
    store = Store(path)
    done = store.done()  # once: a sweep that runs beside this finishes more of them
    return dataset(store.manifest, store.results(done), store.done_cells(done))


def dataset(manifest: Mapping[str, Any], results: np.ndarray, done: np.ndarray) -> Any:
    import xarray as xr

    axes = manifest["grid"]
    labels = ["+".join(axis["names"]) for axis in axes]
    shape = tuple(len(axis["values"]) for axis in axes)
    results = results.reshape(*shape, *results.shape[1:])
    coords: dict[str, Any] = {"time": np.asarray(manifest["config"]["ts"])}
    for label, axis in zip(labels, axes, strict=True):
        for name, column in zip(
            axis["names"], zip(*axis["values"], strict=True), strict=True
        ):
            coords[name] = (label, np.asarray(column))
    place = {name: i for i, name in enumerate(manifest["fields"])}
    dims = (*labels, "time")
    variables: dict[str, Any] = {"done": (labels, done.reshape(shape))}
    for name, i in place.items():
        if "_quantile_" not in name and "_trial_" not in name:
            variables[name] = (dims, results[..., i, :])
    for what in OBSERVED:
        for kind, count in (("quantile", QUANTILES), ("trial", range(manifest["trials"]))):
            names = [f"{what}_{kind}_{x}" for x in count]
            if names[0] in place:
                rows = np.stack([results[..., place[n], :] for n in names], axis=-2)
                variables[f"{what}_{kind}s"] = ((*labels, kind, "time"), rows)
                coords[kind] = list(count)
    # The same at all times, so once is enough.
    variables["finite"] = (labels, results[..., place["finite"], 0])
    attrs = {name: manifest[name] for name in ("trials", "rule")}
    return xr.Dataset(variables, coords, attrs)
