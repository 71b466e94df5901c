"""Which configs a sweep is made of."""

import dataclasses
import difflib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np
from jaxtyping import PyTree

from .._config import Config
from .._leaves import leaves


class Axis(NamedTuple):
    """Names of a config and the values that they take together."""

    names: tuple[str, ...]
    values: tuple[tuple[Any, ...], ...]

    @property
    def label(self) -> str:
        return "+".join(self.names)


class Group(NamedTuple):
    """Cells that differ in numbers only, so that one program serves them all.

    `cells` are their indices in the grid; `leaves` has, for each array of a config that
    varies, its value in each of the cells.
    """

    config: Config
    cells: np.ndarray
    leaves: dict[str, np.ndarray]

    def batched(self, rows: np.ndarray) -> PyTree:
        """The configs of some cells, as one whose arrays all have an axis more."""
        same = leaves(self.config)
        wide = {
            name: self.leaves[name][rows]
            if name in self.leaves
            else np.broadcast_to(np.asarray(leaf), (len(rows), *np.shape(leaf)))
            for name, leaf in same.items()
        }
        _, tree = jax.tree.flatten(self.config)
        return jax.tree.unflatten(tree, list(wide.values()))

    def one(self, row: int) -> Config:
        """The config of a cell."""
        return jax.tree.map(lambda x: x[0], self.batched(np.array([row])))


class Grid:
    """The product of axes; the last one's values change fastest."""

    def __init__(self, config: Config, grid: Any):
        if not isinstance(grid, Mapping) or not grid:
            raise ValueError(
                f"grid = {grid!r} is not allowed: pass a dict of names and their values, "
                "such as {'rule.tau': [0.1, 0.5]}."
            )
        self.config = config
        self.axes = [_axis(config, names, values) for names, values in grid.items()]
        seen = [name for axis in self.axes for name in axis.names]
        for name in seen:
            if seen.count(name) > 1:
                raise ValueError(f"grid has {name!r} twice: give each name one axis.")
        self.shape = tuple(len(axis.values) for axis in self.axes)
        self.size = int(np.prod(self.shape))
        self.groups = list(self._groups())

    def _groups(self) -> Iterator[Group]:
        index = np.arange(self.size).reshape(self.shape)
        fixed = [i for i, axis in enumerate(self.axes) if self._is_fixed(axis)]
        free = [i for i in range(len(self.axes)) if i not in fixed]
        for choice in itertools.product(*(range(self.shape[i]) for i in fixed)):
            at = dict(zip(fixed, choice, strict=True))
            # Fixed ones first: what the others name may only be there then.
            config = self._with({**at, **dict.fromkeys(free, 0)})
            where = tuple(at.get(i, slice(None)) for i in range(len(self.axes)))
            cells = index[where]
            found: dict[str, np.ndarray] = {}
            for place, i in enumerate(free):
                shape = [1] * len(free)
                shape[place] = self.shape[i]
                steps = [
                    self._with({**at, **dict.fromkeys(free, 0), i: j})
                    for j in range(self.shape[i])
                ]
                for name in self._touched(config, self.axes[i]):
                    column = np.stack([np.asarray(leaves(c)[name]) for c in steps])
                    column = column.reshape(*shape, *column.shape[1:])
                    whole = (*cells.shape, *column.shape[len(shape) :])
                    column = np.broadcast_to(column, whole)
                    found[name] = column.reshape(-1, *column.shape[len(shape) :])
            yield Group(config, cells.reshape(-1), found)

    def _is_fixed(self, axis: Axis) -> bool:
        """Whether its values change a config's structure, or when its spike changes: the
        host reads those times before anything runs."""
        configs = [_set(self.config, axis, row) for row in axis.values]
        touched = {leaf for config in configs for leaf in self._touched(config, axis)}
        is_time = any("times" in leaf.split(".") for leaf in touched)
        return is_time or not touched or len(set(map(_kind, configs))) > 1

    def _touched(self, config: Config, axis: Axis) -> list[str]:
        under = lambda leaf, name: leaf == name or leaf.startswith(f"{name}.")
        return [leaf for leaf in leaves(config) if any(under(leaf, n) for n in axis.names)]

    def _with(self, at: Mapping[int, int]) -> Config:
        config = self.config
        for i, j in at.items():
            config = _set(config, self.axes[i], self.axes[i].values[j])
        return config


def _kind(config: Config) -> Any:
    arrays, tree = jax.tree.flatten(config)
    return tree, tuple((np.shape(a), np.asarray(a).dtype.str) for a in arrays)


def _axis(config: Config, names: Any, values: Any) -> Axis:
    single = isinstance(names, str)
    names = (names,) if single else tuple(names)
    if isinstance(values, (str, bytes)) or not np.iterable(values):
        raise ValueError(f"grid[{names[0]!r}] = {values!r} is not allowed: pass a list.")
    as_row = lambda value: tuple(value) if np.iterable(value) else (value,)
    rows = tuple((value,) if single else as_row(value) for value in values)
    if not rows:
        raise ValueError(f"grid[{names[0]!r}] is empty: pass at least one value.")
    if any(len(row) != len(names) for row in rows):
        raise ValueError(f"grid[{names!r}]: pass one value for each name in every entry.")
    axis = Axis(names, rows)
    for row in rows:
        _set(config, axis, row)
    return axis


def _set(config: Config, axis: Axis, row: Sequence[Any]) -> Config:
    for name, value in zip(axis.names, row, strict=True):
        try:
            config = _changed(config, name, name.split("."), value)
        except LookupError:
            known = _names(config)
            near = difflib.get_close_matches(name, known, n=3, cutoff=0.3)
            hint = f"Did you mean {', '.join(map(repr, near))}? " if near else ""
            raise ValueError(
                f"grid names {name!r}, which is not there. {hint}It has {', '.join(known)}."
            ) from None
        except (TypeError, ValueError) as error:
            if str(error).startswith("grid"):
                raise
            raise ValueError(f"grid[{name!r}] has {value!r}: {error}") from None
    return config


def _changed(part: Any, name: str, path: Sequence[str], value: Any) -> Any:
    """`part` with another value at the path of attributes, made and checked anew."""
    head, *rest = path
    if name == "ts":
        raise ValueError("grid names 'ts': all cells are looked at at the config's times.")
    if head not in _fields(part):
        raise LookupError(name)
    if rest:
        value = _changed(getattr(part, head), name, rest, value)
    elif isinstance(value, (bool, str)) or value is None:
        raise ValueError(f"grid[{name!r}] has {value!r}: pass numbers or parts of a config")
    return dataclasses.replace(part, **{head: value})


def _fields(part: Any) -> list[str]:
    return (
        [f.name for f in dataclasses.fields(part)] if isinstance(part, eqx.Module) else []
    )


def _names(part: Any, before: str = "") -> list[str]:
    """What an axis may name, of a config and its parts."""
    found = []
    for name in _fields(part):
        if before + name != "ts":
            below = _names(getattr(part, name), f"{before}{name}.")
            found += [before + name, *below]
    return found
