"""The grid of configs of a sweep, in groups that share a compiled program."""

import dataclasses
import difflib
import functools
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence, Sized
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np
from jaxtyping import PyTree

from .._batch.memory import free_bytes
from .._config import Config
from .._leaves import leaves, replaced
from .._module import show


class Axis(NamedTuple):
    """One axis of a grid: names of numbers or parts, and the values they take together."""

    names: tuple[str, ...]
    values: tuple[tuple[Any, ...], ...]

    @property
    def label(self) -> str:
        return "+".join(self.names)


class Group(NamedTuple):
    """Cells whose configs differ in numbers only, so that one program computes them all.

    `config` is the config of the first cell, and `cells` are the indices of all cells in
    the grid. `leaves` has the values in all cells of each array that varies.
    """

    config: Config
    cells: np.ndarray
    leaves: dict[str, np.ndarray]

    def batched(self, rows: np.ndarray) -> PyTree:
        """Returns the configs of some cells as one, with a leading axis of cells."""
        wide = {
            name: np.broadcast_to(np.asarray(leaf), (len(rows), *np.shape(leaf)))
            for name, leaf in leaves(self.config).items()
        }
        varied = {name: values[rows] for name, values in self.leaves.items()}
        return replaced(self.config, wide | varied)

    def config_of(self, row: int) -> Config:
        """Returns the config of the cell in this row."""
        return jax.tree.map(lambda x: x[0], self.batched(np.array([row])))


class Grid:
    """The Cartesian product of axes; the values of the last axis change fastest.

    An axis may name a number inside a part that another axis names (`rule` and `rule.tau`).
    Whatever their order, the part is set first and the number in it afterwards.
    """

    def __init__(self, config: Config, grid: Any):
        if not isinstance(grid, Mapping) or not grid:
            raise ValueError(
                f"grid = {grid!r} is not allowed: pass a dict of names and their values, "
                "such as {'rule.tau': [0.1, 0.5]}."
            )
        self.config = config
        self.axes = [_axis(names, values) for names, values in grid.items()]
        names = [name for axis in self.axes for name in axis.names]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"grid has {name!r} twice: give each name one axis.")
        self.shape = tuple(len(axis.values) for axis in self.axes)
        self.size = math.prod(self.shape)
        require_cells(self.size, "grid")
        # For each name, the names of the grid that are inside the part it names.
        self._inside = {name: [n for n in names if _is_inside(n, name)] for name in names}
        for i in range(len(self.axes)):
            for at in self._settings(i):
                self._with(at)
            self._require_true_labels(self.axes[i])
        self.groups = list(self._groups())
        self._require_one_shape()

    def labels(self, axis: Axis) -> list[list[Any]]:
        """Returns the labels of an axis' values.

        A number is its own label. A part of a config becomes text, in which a number that
        another axis sets is replaced by the name of that axis.
        """
        return [
            [
                _label(value, name, self._inside[name])
                for name, value in zip(axis.names, row, strict=True)
            ]
            for row in axis.values
        ]

    def _settings(self, i: int) -> Iterator[dict[int, int]]:
        """Yields every entry of an axis, combined with all entries of the axes that set
        parts around it, as a dict from axes to entries."""
        around = [
            j
            for j, axis in enumerate(self.axes)
            if j != i
            and any(_is_inside(n, m) for n in self.axes[i].names for m in axis.names)
        ]
        used = [*around, i]
        for choice in itertools.product(*(range(self.shape[j]) for j in used)):
            yield dict(zip(used, choice, strict=True))

    def _require_true_labels(self, axis: Axis) -> None:
        """Refuses two names for the same number, and entries that become equal when other
        axes have set their numbers."""
        for row in axis.values:
            for name, value in zip(axis.names, row, strict=True):
                if self._inside[name] and not isinstance(value, eqx.Module):
                    raise ValueError(
                        f"grid has {name!r} and {self._inside[name][0]!r}, which are the "
                        "same number: leave one out."
                    )
        before = {tuple(_label(value, "", []) for value in row) for row in axis.values}
        after = {tuple(row) for row in self.labels(axis)}
        if len(after) < len(before):
            inside = [n for name in axis.names for n in self._inside[name]]
            raise ValueError(
                f"grid[{axis.label!r}] has entries that differ in {', '.join(inside)} "
                "only, which another axis sets: leave out all but one of them."
            )

    def _require_one_shape(self) -> None:
        """Refuses cells with different numbers of spikes or components, whose results have
        different shapes."""
        configs = [group.config for group in self.groups]
        shapes = {(c.model.phases()[0].spikes, c.components) for c in configs}
        if len(shapes) > 1:
            shown = ", ".join(f"{d} and {r}" for d, r in sorted(shapes))
            raise ValueError(
                f"grid has cells with different numbers of spikes and components ({shown}) "
                "in one sweep, whose results have different shapes: make a sweep of each, "
                "or give spikes that are missing omega = 0."
            )

    def _groups(self) -> Iterator[Group]:
        """Yields the groups: one for each combination of entries of the fixed axes."""
        index = np.arange(self.size).reshape(self.shape)
        fixed = [i for i in range(len(self.axes)) if self._is_fixed(i)]
        free = [i for i in range(len(self.axes)) if i not in fixed]
        for choice in itertools.product(*(range(self.shape[i]) for i in fixed)):
            at = dict(zip(fixed, choice, strict=True))
            config = self._with({**at, **dict.fromkeys(free, 0)})
            where = tuple(at.get(i, slice(None)) for i in range(len(self.axes)))
            cells = index[where]
            leaf_values: dict[str, np.ndarray] = {}
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
                    full_shape = (*cells.shape, *column.shape[len(shape) :])
                    column = np.broadcast_to(column, full_shape)
                    leaf_values[name] = column.reshape(-1, *column.shape[len(shape) :])
            yield Group(config, cells.reshape(-1), leaf_values)

    def _is_fixed(self, i: int) -> bool:
        """Returns whether an axis needs a group of its own for each of its entries.

        That is so if its values change the structure of a config, the times of its switches
        or its p, which the host reads before anything runs. A part in which other axes set
        numbers counts as structure, so that each array belongs to one axis.
        """
        axis = self.axes[i]
        if any(self._inside[name] for name in axis.names):
            return True
        configs = [self._with(at) for at in self._settings(i)]
        touched = {leaf for config in configs for leaf in self._touched(config, axis)}
        on_host = any({"times", "p"} & set(leaf.split(".")) for leaf in touched)
        return on_host or not touched or len(set(map(_kind, configs))) > 1

    def _touched(self, config: Config, axis: Axis) -> list[str]:
        """Returns the names of the arrays that an axis sets."""
        under = lambda leaf, name: leaf == name or _is_inside(leaf, name)
        return [leaf for leaf in leaves(config) if any(under(leaf, n) for n in axis.names)]

    def _with(self, at: Mapping[int, int]) -> Config:
        """Returns the config with the axes (keys of `at`) at the entries (its values)."""
        values = {
            name: value
            for i, j in at.items()
            for name, value in zip(self.axes[i].names, self.axes[i].values[j], strict=True)
        }
        config = self.config
        for name in sorted(values, key=lambda name: name.count(".")):  # parts first
            around = {n: part for n, part in values.items() if _is_inside(name, n)}
            config = _set(config, name, values[name], around)
        return config


def require_cells(count: int, what: str) -> None:
    """Refuses more cells than the free memory can index."""
    most = int(free_bytes() // _BYTES_A_CELL)
    if count > most:
        raise ValueError(
            f"{what} has {count:.4g} cells, and the memory that is free here is enough for "
            f"the index of {most:.4g}: pass fewer values, or split the sweep."
        )


_BYTES_A_CELL = 256
"""The memory for the index of a cell, its settings and a few rows of its results."""


def _is_inside(name: str, part: str) -> bool:
    return name.startswith(f"{part}.")


def _kind(config: Config) -> Any:
    """Returns the structure of a config, with the shapes and types of its arrays."""
    arrays, tree = jax.tree.flatten(config)
    return tree, tuple((np.shape(a), np.asarray(a).dtype.str) for a in arrays)


def _axis(names: Any, values: Any) -> Axis:
    single = not isinstance(names, tuple)
    names = (names,) if single else names
    if not names or not all(isinstance(name, str) for name in names):
        shown = names[0] if single else names
        raise ValueError(f"grid names {shown!r}: pass a name, or a tuple of names.")
    if isinstance(values, (str, bytes)) or not np.iterable(values):
        raise ValueError(f"grid[{names[0]!r}] = {values!r} is not allowed: pass a list.")
    if isinstance(values, Sized):
        require_cells(len(values), f"grid[{names[0]!r}]")
    as_row = lambda value: tuple(value) if np.iterable(value) else (value,)
    rows = tuple((value,) if single else as_row(value) for value in values)
    if not rows:
        raise ValueError(f"grid[{names[0]!r}] is empty: pass at least one value.")
    if any(len(row) != len(names) for row in rows):
        raise ValueError(f"grid[{names!r}]: pass one value for each name in every entry.")
    return Axis(names, rows)


def _label(value: Any, name: str, inside: Sequence[str]) -> Any:
    """Returns the label of a value of `name`; other axes set the names `inside` of it."""
    if np.ndim(value) == 0 and np.asarray(value).dtype.kind in "iuf":
        return np.asarray(value).item()
    for inner in inside:
        path = inner.removeprefix(f"{name}.").split(".")
        at = lambda part, path=path: functools.reduce(getattr, path, part)
        value = eqx.tree_at(at, value, _Name(inner))
    return as_text(value)


def as_text(part: Any) -> str:
    """Returns a part of a config with its numbers as text, on one line."""
    return show(part, width=None, entries=None)


class _Name:
    """A placeholder in a label for the value that another axis sets."""

    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return f"<{self.name}>"


def _set(config: Config, name: str, value: Any, around: Mapping[str, Any]) -> Config:
    """Returns `config` with another value at `name`.

    `around` has the parts that contain it, as far as other axes set those.
    """
    where = "".join(f" with {n} = {as_text(part)}" for n, part in around.items())
    try:
        new = _changed(config, name, name.split("."), value)
        if around and not isinstance(value, eqx.Module):
            _require_number(config, new, name, value, where)
        return new
    except LookupError:
        known = _names(config)
        near = difflib.get_close_matches(name, known, n=3, cutoff=0.3)
        hint = f"Did you mean {', '.join(map(repr, near))}? " if near else ""
        raise ValueError(
            f"grid names {name!r}, which does not exist{where}. {hint}It has "
            f"{', '.join(known)}."
        ) from None
    except (TypeError, ValueError, OverflowError) as error:
        if str(error).startswith("grid"):
            raise
        raise ValueError(f"grid[{name!r}] has {value!r}{where}: {error}") from None


def _require_number(before: Config, after: Config, name: str, value: Any, where: str):
    """Refuses a number that replaces a part inside a part that another axis sets: the cell
    would be labelled with the replaced part."""
    at = lambda config: functools.reduce(getattr, name.split("."), config)
    old, new = at(before), at(after)
    if isinstance(old, eqx.Module) and type(old) is not type(new):
        raise ValueError(
            f"grid[{name!r}] has {value!r}, but {name}{where} is not a number, it is "
            f"{as_text(old)}: leave that part out, and sweep it on its own."
        )


def _changed(part: Any, name: str, path: Sequence[str], value: Any) -> Any:
    """Returns `part` with another value at the path of attributes, checked again."""
    head, *rest = path
    if name == "ts":
        raise ValueError(
            "grid names 'ts', but all cells are observed at the config's times: set them "
            "there."
        )
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
    """Returns the names of a config's numbers and parts that an axis may set."""
    names = []
    for name in _fields(part):
        if before + name != "ts":
            below = _names(getattr(part, name), f"{before}{name}.")
            names += [before + name, *below]
    return names
