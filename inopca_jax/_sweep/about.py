"""What a sweep's results depend on, for its store to remember."""

import importlib.metadata
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.random as jr
import numpy as np

from .._leaves import leaves
from .grid import Grid
from .run import THEORY
from .statistics import fields


def description(grid: Grid, trials, key, engine, observables, theory) -> dict[str, Any]:
    """Everything that the results depend on, for the store to remember."""
    names = fields(observables, trials)
    names += list(THEORY[: {False: 0, True: 2, "bars": 4}[theory]])
    arrays = {k: np.asarray(v).tolist() for k, v in leaves(grid.config).items()}
    _, tree = jax.tree.flatten(grid.config)
    raw = key if key.dtype == np.uint32 else jr.key_data(key)
    packages = ("jax", "jaxlib", "numpy", "inopca_jax")
    return dict(
        config=arrays,
        rule=type(grid.config.rule).__name__,
        structure=str(tree),
        grid=[dict(names=list(a.names), values=_plain(a.values)) for a in grid.axes],
        trials=trials,
        key=np.asarray(raw).tolist(),
        engine=_written(engine),
        x64=bool(jax.config.jax_enable_x64),  # pyright: ignore
        fields=names,
        tile=[engine.suited(g.config).tile() for g in grid.groups],
        versions={name: importlib.metadata.version(name) for name in packages},
    )


def _plain(values: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """Numbers as they are, parts of a config as they are written."""
    is_number = lambda x: np.ndim(x) == 0 and np.asarray(x).dtype.kind in "iuf"
    one = lambda x: np.asarray(x).item() if is_number(x) else _written(x)
    return [[one(x) for x in row] for row in values]


def _written(part: Any) -> str:
    """With its numbers, on one line."""
    return eqx.tree_pformat(part, short_arrays=False, width=10_000)


def require_same(path: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    now = json.loads(json.dumps(now))
    differ = [k for k in now if k != "versions" and before.get(k) != now[k]]
    if differ:
        shown = "; ".join(
            f"{k}: {str(before.get(k))[:80]} there, {str(now[k])[:80]} here" for k in differ
        )
        raise ValueError(
            f"store = {path} was made by another sweep ({shown}): pass another path."
        )
