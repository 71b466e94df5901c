"""Reads the spec of a sweep, a TOML file.

`[config]` has the flags of `inopca simulate`, `[grid]` the axes of the grid, and `[run]`
other arguments of `sweep`.
"""

import dataclasses
import difflib
import math
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

import jax.random as jr
import numpy as np

import inopca_jax as ino

from .._check import refuse
from .._sweep.grid import require_cells
from .flags import require_read
from .problem import LABELS, Algorithm, Model, Problem, Start, Times, require_seed

_PARTS = dict(algorithm=Algorithm, model=Model, start=Start, times=Times)
_ENGINES = dict(chain=ino.Chain, stream=ino.Stream, diffusion=ino.Diffusion)
_RUN: dict[str, Any] = dict(
    trials=20, seed=0, engine="chain", observables=["mean", "std"], theory=False, fsync=True
)
_RANGE: dict[str, Any] = {"from": 0.1, "to": 1.0, "count": 10, "log": False}
_MOST_BYTES = 2**22


class Spec(NamedTuple):
    """The arguments of `sweep`."""

    config: ino.Config
    grid: dict[Any, list[Any]]
    options: dict[str, Any]


def read_spec(path: Path) -> Spec:
    """Returns the spec in a TOML file; raises a `ValueError` for any mistake in it."""
    try:
        with open(path, "rb") as file:
            content = file.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            raise ValueError(
                f"spec = {path} has more than {_MOST_BYTES:,} bytes: pass a TOML file, and "
                "long axes as { from, to, count }."
            )
        text = tomllib.loads(content.decode())
    except OSError as error:
        raise ValueError(f"spec = {path} cannot be read: {error}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"spec = {path} is not TOML: {error}.") from None
    _require_names("", text, ["config", "grid", "run"])
    flags = text.get("config", {})
    part_of = {f.name: n for n, part in _PARTS.items() for f in dataclasses.fields(part)}
    _require_names("config.", flags, list(part_of))
    problem = Problem()
    for name, value in flags.items():
        part = getattr(problem, part_of[name])
        new = dataclasses.replace(part, **{name: _require_type(type(part), name, value)})
        problem = dataclasses.replace(problem, **{part_of[name]: new})
    grid = text.get("grid", {})
    if not isinstance(grid, dict) or not grid:
        raise ValueError(f"spec = {path} has no [grid]: name at least one axis.")
    axes = dict(_axis(problem, name, values) for name, values in grid.items())
    _require_read(problem, flags, grid)
    run = text.get("run", {})
    _require_names("run.", run, list(_RUN))
    options = _RUN | {
        name: _require_like(f"run.{name}", run[name], _RUN[name]) for name in run
    }
    seed, engine = options.pop("seed"), options.pop("engine")
    require_seed(seed, "run.seed")
    if engine not in _ENGINES:
        refuse("run.engine", engine, f"pass one of {[*_ENGINES]}")
    options |= dict(key=jr.key(seed), engine=_ENGINES[engine]())
    return Spec(problem.build(), axes, options)


def _require_read(problem: Problem, flags: Mapping[str, Any], grid: Mapping[str, Any]):
    """Raises a `ValueError` for flags that no cell of the grid reads, or that an axis sets
    in every cell."""
    names = [part.strip() for axis in grid for part in axis.split(",")]
    for name in names:
        flag = _FLAG_OF.get(name, name.split(".")[-1])
        if flag in flags:
            remedy = f"grid.{name} sets it in every cell; leave it out"
            refuse(f"config.{flag}", flags[flag], remedy)
    rules = grid.get("rule", [problem.algorithm.rule])
    algorithms = [dataclasses.replace(problem.algorithm, rule=rule) for rule in rules]
    variants = [dataclasses.replace(problem, algorithm=a) for a in algorithms]
    require_read(variants, flags, "config.")


_FLAG_OF = {"rule.tau.value": "tau", "rule.tau.ts": "knots", "model.times": "switch_times"}
"""The flags of numbers that have another name in a config."""


def _require_type(part: type, name: str, value: Any) -> Any:
    """Returns the value of a flag, if it is of the flag's type or one of its choices."""
    default, hint = getattr(part, name), get_type_hints(part)[name]
    entry_hint = get_args(hint)[0] if isinstance(default, tuple) else hint
    choices = get_args(entry_hint) if get_origin(entry_hint) is Literal else ()
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if is_number and isinstance(default, tuple) and default:
        value = [value]  # one number, where several are allowed
    value = _require_like(f"config.{name}", value, default)
    entries = value if isinstance(default, tuple) else [value]
    for entry in entries:
        if choices and entry not in choices:
            near = difflib.get_close_matches(str(entry), choices, n=3, cutoff=0.3)
            raise ValueError(
                f"config.{name} has {entry!r}. Did you mean {', '.join(near or choices)}?"
            )
        if isinstance(default, tuple) and not choices:
            _require_like(f"config.{name}", entry, 1.0)
    if isinstance(default, tuple):
        return tuple(entries if choices else map(float, entries))
    return float(value) if isinstance(default, float) or default is None else value


def _require_like(name: str, value: Any, default: Any) -> Any:
    """Returns the value, if it is of the same kind as the default."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    size: Any = abs(value) if is_number else math.inf
    kinds = {
        bool: isinstance(value, bool) or (name == "run.theory" and value == "bars"),
        str: isinstance(value, str),
        int: size < 2**63 and size == size // 1,
        float: size <= sys.float_info.max,
        type(None): size <= sys.float_info.max,
        tuple: isinstance(value, list),
        list: isinstance(value, list) and all(isinstance(x, str) for x in value),
    }
    if not kinds[type(default)]:
        raise ValueError(
            f"{name} = {value!r} is not allowed: pass something like {default!r}."
        )
    return int(value) if type(default) is int else value  # pyright: ignore


def _axis(problem: Problem, name: str, values: Any) -> tuple[Any, list[Any]]:
    """Returns the names and values of an axis, in the form that `sweep` takes."""
    if isinstance(values, dict):
        _require_names(f"grid.{name}.", values, list(_RANGE))
        if not {"from", "to", "count"} <= set(values):
            raise ValueError(f"grid.{name} = {values} needs from, to and count.")
        entries = {
            key: _require_like(f"grid.{name}.{key}", value, _RANGE[key])
            for key, value in values.items()
        }
        count = int(entries["count"])
        require_cells(count, f"grid.{name}")
        space = np.geomspace if entries.get("log") else np.linspace
        try:
            values = space(entries["from"], entries["to"], count).tolist()
        except ValueError as error:
            raise ValueError(f"grid.{name} = {values}: {error}.") from None
    if not isinstance(values, list):
        refuse(f"grid.{name}", values, "pass a list of values")
    if name == "rule":
        return name, [_rule(problem, value) for value in values]
    names = tuple(part.strip() for part in name.split(","))
    return (names if len(names) > 1 else name), values


def _rule(problem: Problem, name: Any) -> ino.AbstractRule:
    if not isinstance(name, str) or name not in LABELS:
        raise ValueError(f"grid.rule has {name!r}: pass some of {', '.join(LABELS)}.")
    return dataclasses.replace(problem.algorithm, rule=name).build()


def _require_names(where: str, given: Mapping[str, Any], names: list[str]) -> None:
    """Raises a `ValueError` if a table of the file has a key that is not in `names`."""
    if not isinstance(given, Mapping):
        raise ValueError(f"{where.rstrip('.')} = {given!r} is not a table.")
    for name in given:
        if name not in names:
            closest = difflib.get_close_matches(name, names, n=3, cutoff=0.3) or names
            raise ValueError(
                f"{where}{name} is not known. Did you mean {', '.join(closest)}?"
            )
