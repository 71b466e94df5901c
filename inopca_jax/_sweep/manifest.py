"""The manifest of a sweep: everything that its results depend on."""

import dataclasses
import importlib.metadata
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import jax.random as jr
import numpy as np

from .._engine import AbstractEngine
from .._types import TrialKey
from .grid import as_text
from .run import Run


def describe(run: Run, key: TrialKey, engine: AbstractEngine) -> dict[str, Any]:
    """Returns the manifest of a sweep, in types that JSON has."""
    grid = run.grid
    words = key if key.dtype == np.uint32 else jr.key_data(key)
    packages = ("jax", "jaxlib", "numpy", "inopca_jax")
    return dict(
        config=_describe_part(grid.config, "config"),
        rule=type(grid.config.rule).__name__,
        grid=[dict(names=list(a.names), values=grid.labels(a)) for a in grid.axes],
        trials=run.trials,
        key=np.asarray(words).tolist(),
        engine=as_text(engine),
        x64=bool(jax.config.jax_enable_x64),  # pyright: ignore
        fields=run.fields(),
        shape=run.shape(),
        unit_cells=run.unit_cells,
        versions={name: importlib.metadata.version(name) for name in packages},
    )


def _describe_part(part: Any, name: str) -> dict[str, Any]:
    """Returns the classes, numbers and arrays of a part of a config, by dotted names."""
    entries: dict[str, Any] = {}
    if dataclasses.is_dataclass(part):
        fields = {f.name: f for f in dataclasses.fields(part)}
        children = {name: getattr(part, name) for name in fields}
        # An optional part that is absent is not described: see `PublicModule`.
        children = {
            name: child
            for name, child in children.items()
            if not (child is None and fields[name].metadata.get("is_optional"))
        }
        entries[name] = type(part).__name__
    elif isinstance(part, (list, tuple)):
        children = {str(i): entry for i, entry in enumerate(part)}
    else:
        is_array = isinstance(part, (bool, int, float, np.ndarray, np.generic, jax.Array))
        return {name: np.asarray(part).tolist() if is_array else as_text(part)}
    for key, child in children.items():
        entries |= _describe_part(child, key if name == "config" else f"{name}.{key}")
    return entries


def require_same(
    path: Path, stored: Mapping[str, Any], requested: Mapping[str, Any]
) -> None:
    """Raises a `ValueError` if a store has another manifest, versions aside, than the sweep
    that is to be written to it."""
    old, new = _flat(stored), _flat(json.loads(json.dumps(requested)))
    names = [name for name in {**new, **old} if not name.startswith("versions.")]
    differ = [name for name in names if old.get(name) != new.get(name)]
    if differ:
        shown = [
            f"{name}: {_difference(old.get(name), new.get(name))}"
            for name in differ[:_MOST_DIFFERENCES]
        ]
        if len(differ) > _MOST_DIFFERENCES:
            shown.append(f"and {len(differ) - _MOST_DIFFERENCES} more")
        raise ValueError(
            f"store = {path} has the results of another sweep ({'; '.join(shown)}): pass "
            "another path."
        )


def require_same_versions(path: Path, stored: Mapping, installed: Mapping) -> None:
    """Raises a `ValueError` if a store that is not complete has results of other versions
    of packages: their bits may differ."""
    names = {**stored, **installed}
    differ = [name for name in names if stored.get(name) != installed.get(name)]
    if differ:
        shown = ", ".join(
            f"{name} {stored.get(name)} in the store, {installed.get(name)} installed"
            for name in differ
        )
        raise ValueError(
            f"store = {path} is not complete and has results of other versions ({shown}): "
            "install those versions to continue, or pass another path."
        )


_MOST_DIFFERENCES = 6
"""How many differing fields an error shows."""


def _flat(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a manifest with an entry for each name of the config and axis of the grid."""
    axes = {"+".join(axis["names"]): axis["values"] for axis in manifest.get("grid", [])}
    entries: dict[str, Any] = {}
    # "axes" has their order: by their names alone a transposed grid would be the same.
    for name, value in {**manifest, "grid": axes, "axes": list(axes)}.items():
        if isinstance(value, Mapping):
            entries |= {f"{name}.{key}": entry for key, entry in value.items()}
        else:
            entries[name] = value
    return entries


def _difference(stored: Any, requested: Any) -> str:
    """Returns a text that shows both values; of two long lists, only what differs."""
    are_lists = isinstance(stored, list) and isinstance(requested, list)
    if are_lists and len(str(requested)) > _LONGEST and len(stored) == len(requested):
        pairs = list(zip(stored, requested, strict=True))
        i = next(i for i, (old, new) in enumerate(pairs) if old != new)
        return f"{_both(*pairs[i])}, at index {i}"
    if are_lists and max(len(str(requested)), len(str(stored))) > _LONGEST:
        only_stored = [x for x in stored if x not in requested]
        only_requested = [x for x in requested if x not in stored]
        return (
            f"{_short(only_stored)} only in the store, {_short(only_requested)} only in "
            "this sweep"
        )
    return _both(stored, requested)


def _both(stored: Any, requested: Any) -> str:
    return f"{_short(stored)} in the store, {_short(requested)} in this sweep"


_LONGEST = 60
"""How many characters of a value an error shows."""


def _short(value: Any) -> str:
    text = "nothing" if value is None else str(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
