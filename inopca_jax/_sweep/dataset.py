"""The results of a sweep as an `xarray.Dataset`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from .._check import Checked, require_path
from .._extras import import_extra
from .statistics import OBSERVED, QUANTILES
from .store import Store


def open_sweep(path: Checked[str | Path]) -> Any:
    """Returns the results in a sweep's store as an `xarray.Dataset`.

    It may be called while the sweep still runs.

    **Arguments:**

    - `path`: the store of a `sweep`.

    **Returns:**

    An `xarray.Dataset` with one dimension for each axis of the grid, and `time`. Names that
    vary together share one dimension and have a coordinate each. The variables (such as
    `q_mean`, `abs_q_std`, `lam_mean`) have shape `(*axes, time)`; quantiles and trials have
    one dimension more. `finite`, of shape `axes`, counts the trials of a cell that did not
    diverge. `done`, of shape `axes`, says which cells are finished; the others are NaN.
    """
    path = require_path("path", path)
    if not path.exists():
        raise ValueError(f"path = {path} does not exist: pass a sweep's store.")
    store = Store(path)
    # Read once: a sweep that runs at the same time may finish more units in between.
    done = store.done()
    return to_dataset(store.manifest, store.results(done), store.done_cells(done))


def to_dataset(manifest: Mapping[str, Any], results: np.ndarray, done: np.ndarray) -> Any:
    """Returns results as an `xarray.Dataset`.

    **Arguments:**

    - `manifest`: the description of the sweep that `manifest.describe` returns.
    - `results`: shape `(cells, fields, times)`.
    - `done`: shape `(cells,)`, whether a cell is finished.
    """
    xr = import_extra("xarray", "A sweep's dataset", "sweep")
    axes = manifest["grid"]
    labels = ["+".join(axis["names"]) for axis in axes]
    shape = tuple(len(axis["values"]) for axis in axes)
    results = results.reshape(*shape, *results.shape[1:])
    coords: dict[str, Any] = {"time": np.asarray(manifest["config"]["ts"])}
    for label, axis in zip(labels, axes, strict=True):
        columns = zip(*axis["values"], strict=True)
        for name, column in zip(axis["names"], columns, strict=True):
            coords[name] = (label, np.asarray(column))
    row_of = {name: i for i, name in enumerate(manifest["fields"])}
    dims = (*labels, "time")
    variables: dict[str, Any] = {"done": (labels, done.reshape(shape))}
    for name, i in row_of.items():
        if "_quantile_" not in name and "_trial_" not in name:
            variables[name] = (dims, results[..., i, :])
    for quantity in OBSERVED:
        for kind, values in (("quantile", QUANTILES), ("trial", range(manifest["trials"]))):
            names = [f"{quantity}_{kind}_{value}" for value in values]
            if names[0] in row_of:
                rows = np.stack([results[..., row_of[n], :] for n in names], axis=-2)
                variables[f"{quantity}_{kind}s"] = ((*labels, kind, "time"), rows)
                coords[kind] = list(values)
    # The count is the same at all times.
    variables["finite"] = (labels, results[..., row_of["finite"], 0])
    attrs = {name: manifest[name] for name in ("trials", "rule")}
    return xr.Dataset(variables, coords, attrs)
