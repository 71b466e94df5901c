"""The results of a sweep as an `xarray.Dataset`."""

import ast
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .._check import Checked, require_path
from .._extras import import_extra
from .statistics import DIMENSIONS, QUANTILES
from .store import Store


def open_sweep(path: Checked[str | Path]) -> Any:
    """Returns the results in a sweep's store as an `xarray.Dataset`.

    It may be called while the sweep still runs.

    **Arguments:**

    - `path`: the store of a `sweep`.

    **Returns:**

    An `xarray.Dataset` with one dimension for each axis of the grid, and `time`. Names that
    vary together share one dimension and have a coordinate each. A part of a config, such
    as a rule, is labelled with the name of its class, as in `dataset.sel(rule="Oja")`, and
    with those arguments that tell it from others of its class, as `"InoPCA(tau=0.5)"`. The
    variables (such as `q_mean`, `abs_q_std`, `lam_mean`) have shape `(*axes, time)`;
    quantiles and trials have one dimension more. `finite`, of shape `axes`, counts the
    trials of a cell that did not diverge. `done`, of shape `axes`, says which cells are
    finished; the others are NaN.

    If there are several spikes or components, the variables are those of `overlaps`,
    `abs_overlaps`, `norms`, `cosines`, `grassmann_distance` and `captured_share`. They have
    the dimensions `spike` and `component` behind `time`, as in a `ComponentTrajectory`, and
    the coordinate `omega` has the signal-to-noise ratios in force.

    **Example:**

    ```pycon
    >>> import tempfile
    >>> import inopca_jax as ino, jax
    >>> config = ino.Config(model=ino.SpikedModel(p=100), ts=[0.0, 1.0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store, grid = f"{folder}/s.zarr", {"rule.tau": [0.2, 0.5]}
    ...     _ = ino.sweep(config, grid, trials=4, key=jax.random.key(0), store=store)
    ...     dataset = ino.open_sweep(store)
    >>> dataset.done.values.tolist(), dict(dataset.q_mean.sizes)
    ([True, True], {'rule.tau': 2, 'time': 2})

    ```
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
            coords[name] = (label, np.asarray(short_labels(column)))
    variables: dict[str, Any] = {"done": (labels, done.reshape(shape))}
    rows = _rows(manifest["fields"])
    array_of = lambda name: _array(results, manifest["fields"], rows[name])
    dims_of = lambda name: ("time", *DIMENSIONS.get(_quantity(name), ()))
    for name in rows:
        if "_quantile_" not in name and "_trial_" not in name:
            variables[name] = ((*labels, *dims_of(name)), array_of(name))
    for quantity in DIMENSIONS:
        for kind, values in (("quantile", QUANTILES), ("trial", range(manifest["trials"]))):
            names = [f"{quantity}_{kind}_{value}" for value in values]
            if names[0] in rows:
                stacked = np.stack([array_of(name) for name in names], axis=len(labels))
                dims = (*labels, kind, *dims_of(quantity))
                variables[f"{quantity}_{kind}s"] = (dims, stacked)
                coords[kind] = list(values)
    # The count is the same at all times.
    variables["finite"] = (labels, variables["finite"][1][..., 0])
    if "omega" in variables:
        coords["omega"] = variables.pop("omega")
    attrs = {name: manifest[name] for name in ("trials", "rule")}
    # Not a bool, which netCDF has not.
    changed = (".turning", ".observed")
    attrs["is_plain_model"] = int(not any(n.endswith(changed) for n in manifest["config"]))
    return xr.Dataset(variables, coords, attrs)


def _rows(fields: Sequence[str]) -> dict[str, list[int]]:
    """Returns the places of the rows of each variable: see `statistics.rows_of`."""
    rows: dict[str, list[int]] = {}
    for i, field in enumerate(fields):
        rows.setdefault(field.partition("[")[0], []).append(i)
    return rows


def _array(results: np.ndarray, fields: Sequence[str], rows: Sequence[int]) -> np.ndarray:
    """Returns a variable of shape `(*axes, times, ...)`, given the places of its rows."""
    _, _, index = fields[rows[-1]].partition("[")
    sizes = [int(i) + 1 for i in index.removesuffix("]").split(",") if i]
    array = np.moveaxis(results[..., rows, :], -2, -1)
    return array.reshape(*array.shape[:-1], *sizes)


def _quantity(name: str) -> str:
    """Returns the quantity that a variable, such as `overlaps_mean`, is of."""
    of = [q for q in DIMENSIONS if name == q or name.startswith(f"{q}_")]
    return max(of, key=len, default="")


def short_labels(texts: Sequence[Any]) -> list[Any]:
    """Returns short labels of the values of an axis: of parts of a config that are given as
    text, such as `"InoPCA(tau=0.5)"`, the class, with those arguments that tell it from the
    others of this class. Anything else is its own label."""
    calls = [_arguments(text) for text in texts]
    labels = []
    for text, (name, arguments) in zip(texts, calls, strict=True):
        others = [other for other_name, other in calls if other_name == name]
        telling = [
            f"{argument}={value}"
            for argument, value in arguments.items()
            if any(other.get(argument) != value for other in others)
        ]
        shown = f"{name}({', '.join(telling)})" if telling else name
        labels.append(shown if isinstance(text, str) else text)
    return labels


def _arguments(text: Any) -> tuple[str, dict[str, str]]:
    """Returns the class and the arguments of `"Name(a=1, b=[2, 3])"`, or the text itself
    and no arguments if it has another form."""
    # `<rule.tau>` stands for a number that another axis sets.
    source = str(text).replace("<", "'<").replace(">", ">'")
    try:
        call = ast.parse(source, mode="eval").body
    except SyntaxError:
        return str(text), {}
    if not isinstance(call, ast.Call):
        return str(text), {}
    values = {k.arg: ast.get_source_segment(source, k.value) for k in call.keywords}
    return ast.unparse(call.func), {str(k): str(v) for k, v in values.items()}
