"""What a sweep's results depend on, for its store to remember."""

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
    """Everything that the results depend on, for the store to remember."""
    grid = run.grid
    raw = key if key.dtype == np.uint32 else jr.key_data(key)
    packages = ("jax", "jaxlib", "numpy", "inopca_jax")
    return dict(
        config=_parts(grid.config, "config"),
        rule=type(grid.config.rule).__name__,
        grid=[dict(names=list(a.names), values=grid.labels(a)) for a in grid.axes],
        trials=run.trials,
        key=np.asarray(raw).tolist(),
        engine=as_text(engine),
        x64=bool(jax.config.jax_enable_x64),  # pyright: ignore
        fields=run.fields(),
        shape=run.shape(),
        unit_cells=run.unit_cells,
        versions={name: importlib.metadata.version(name) for name in packages},
    )


def _parts(part: Any, name: str) -> dict[str, Any]:
    """Kinds, numbers and arrays of a part of a config, by their names below it."""
    found: dict[str, Any] = {}
    if dataclasses.is_dataclass(part):
        below = {f.name: getattr(part, f.name) for f in dataclasses.fields(part)}
        found[name] = type(part).__name__
    elif isinstance(part, (list, tuple)):
        below = {str(i): entry for i, entry in enumerate(part)}
    else:
        is_array = isinstance(part, (bool, int, float, np.ndarray, np.generic, jax.Array))
        return {name: np.asarray(part).tolist() if is_array else as_text(part)}
    for key, value in below.items():
        found |= _parts(value, key if name == "config" else f"{name}.{key}")
    return found


def require_same(path: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Refuses a store of another sweep."""
    there, here = _flat(before), _flat(json.loads(json.dumps(now)))
    names = [k for k in {**here, **there} if not k.startswith("versions.")]
    differ = [k for k in names if there.get(k) != here.get(k)]
    if differ:
        shown = [f"{k}: {_difference(there.get(k), here.get(k))}" for k in differ[:_MOST]]
        if len(differ) > _MOST:
            shown.append(f"and {len(differ) - _MOST} more")
        raise ValueError(
            f"store = {path} was made by another sweep ({'; '.join(shown)}): pass another "
            "path."
        )


def require_same_versions(what: str, there: Mapping, here: Mapping) -> None:
    """Refuses to mix results of different versions: they differ in their last bits, or in
    more."""
    names = [name for name in {**there, **here} if there.get(name) != here.get(name)]
    if names:
        shown = ", ".join(f"{n} {there.get(n)} there, {here.get(n)} here" for n in names)
        raise ValueError(
            f"{what} has results of other versions ({shown}), and is not complete: install "
            "those versions to go on, or pass another path."
        )


_MOST = 6
"""How many differing fields are shown."""


def _flat(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """One entry for each name of the config and each axis of the grid."""
    axes = {"+".join(axis["names"]): axis["values"] for axis in manifest.get("grid", [])}
    found: dict[str, Any] = {}
    # By name alone a transposed grid would be the same one.
    for name, value in {**manifest, "grid": axes, "axes": list(axes)}.items():
        inner = value if isinstance(value, Mapping) else {}
        found |= {f"{name}.{key}": entry for key, entry in inner.items()}
        found |= {} if isinstance(value, Mapping) else {name: value}
    return found


def _difference(there: Any, here: Any) -> str:
    """Of two long lists, where they first part, or what only one of them has."""
    lists = isinstance(there, list) and isinstance(here, list)
    if lists and len(str(here)) > _LONG and len(there) == len(here):
        pairs = zip(there, here, strict=True)
        at, (there, here) = next((i, p) for i, p in enumerate(pairs) if p[0] != p[1])
        return f"{_short(there)} there, {_short(here)} here, in place {at}"
    if lists and max(len(str(here)), len(str(there))) > _LONG:
        there, here = (
            [x for x in one if x not in other]
            for one, other in ((there, here), (here, there))
        )
        return f"{_short(there)} only there, {_short(here)} only here"
    return f"{_short(there)} there, {_short(here)} here"


_LONG = 60


def _short(value: Any) -> str:
    text = "nothing" if value is None else str(value)
    return text if len(text) <= _LONG else f"{text[: _LONG - 3]}..."
