"""Finds flags on the command line that the command does not read."""

import dataclasses
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

Case: TypeAlias = str | bool
Reads: TypeAlias = Mapping[
    str | tuple[str, ...], Mapping[Case | tuple[Case, ...], tuple[str, ...]]
]
"""The type of `READS`, a table in a dataclass of flags that says which flags are read only
with certain values of others. `{"spike": {"sparse": ("rho",)}}`: `rho` is read only if
`spike` is sparse. `{"plot": {True: ("bars",)}}`: `bars` is read only if `plot` is given.
Conditions on several flags at once have a tuple of names, and tuples of values. A flag that
is in no table is always read."""


def flags_in(argv: Sequence[str]) -> set[str]:
    """Returns the flags on a command line, by the names of their fields.

    That is `t_max` for `--t-max 5` and `--t-max=5`, and `quick` for `--no-quick`.
    """
    names = (word[2:].split("=")[0] for word in argv if word.startswith("--"))
    return {name.removeprefix("no-").replace("-", "_") for name in names}


def require_read(variants: Sequence[Any], given: Collection[str], where: str = "") -> None:
    """Raises a `ValueError` for the first of the `given` flags that is not read.

    **Arguments:**

    - `variants`: dataclasses of flags, possibly nested. A flag counts as read if one of
        them reads it.
    - `given`: the names of the flags that the user has set.
    - `where`: a prefix of the flag's name in the error.
    """
    checks = [_FlagCheck(variant) for variant in variants]
    for name, value in checks[0].values.items():
        if name in given and all(name in check.unread for check in checks):
            raise ValueError(
                f"{where}{name} = {_shown(value)} is not allowed: it is read only "
                f"{checks[0].conditions_of(name)}. Leave it out."
            )


class _FlagCheck:
    """The values of the flags in a dataclass, and the names of those that are not read."""

    def __init__(self, flags: Any):
        self.values: dict[str, Any] = {}
        self._rows: list[tuple[dict[str, Case], tuple[str, ...]]] = []
        for part in _nested(flags):
            for field in dataclasses.fields(part):
                value = getattr(part, field.name)
                if not dataclasses.is_dataclass(value):
                    self.values[field.name] = value
            self._rows += _rows(getattr(part, "READS", {}))
        conditional = {name for _, names in self._rows for name in names}
        read = set(self.values) - conditional
        # Repeated, as a conditional flag may itself be a condition: `tau` is read only if
        # `schedule` is, which is read only with some rules.
        for _ in self._rows:
            for conditions, names in self._rows:
                is_met = (n in read and self._has(n, c) for n, c in conditions.items())
                if all(is_met):
                    read |= set(names)
        self.unread = set(self.values) - read

    def _has(self, name: str, case: Case) -> bool:
        """Whether a flag has the value of a condition."""
        value = self.values[name]
        if isinstance(case, bool):
            return bool(value) == case
        return case in value if isinstance(value, tuple) else value == case

    def conditions_of(self, name: str) -> str:
        """Returns the conditions under which a flag is read, in words."""
        # Conditions on the same flags are put together: "with rule = oja or cubic".
        groups: dict[tuple[str, ...], dict[str, list[Case]]] = {}
        for conditions, names in self._rows:
            if name in names:
                values = groups.setdefault(tuple(conditions), {n: [] for n in conditions})
                for n, case in conditions.items():
                    values[n] += [] if case in values[n] else [case]
        phrases = (
            " and ".join(_phrase(n, cases) for n, cases in values.items())
            + self._outer_conditions(values)
            for values in groups.values()
        )
        return ", or ".join(phrases)

    def _outer_conditions(self, names: Collection[str]) -> str:
        """Returns the conditions of those of the flags that are not read themselves."""
        unread = [name for name in names if name in self.unread]
        return "".join(
            f", which is read only {self.conditions_of(name)}" for name in unread
        )


def _nested(flags: Any) -> Iterator[Any]:
    """Yields a dataclass and all dataclasses in its fields."""
    yield flags
    for field in dataclasses.fields(flags):
        if dataclasses.is_dataclass(value := getattr(flags, field.name)):
            yield from _nested(value)


def _rows(reads: Reads) -> Iterator[tuple[dict[str, Case], tuple[str, ...]]]:
    """Yields the rows of a table: the conditions by flag, and the flags read under them."""
    for key, table in reads.items():
        for case, names in table.items():
            keys = (key,) if isinstance(key, str) else key
            cases = case if isinstance(case, tuple) else (case,)
            yield dict(zip(keys, cases, strict=True)), names


def _phrase(name: str, cases: Sequence[Case]) -> str:
    """Returns the condition that a flag has one of the values, in words."""
    if cases == [True]:
        return f"with {name}"
    if cases == [False]:
        return f"without {name}"
    *others, last = map(str, cases)
    return f"with {name} = {', '.join(others)}{' or ' if others else ''}{last}"


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return " ".join(map(str, value))
    return str(value)
