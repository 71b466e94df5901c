"""Which flags were given, and which of them the command reads."""

import dataclasses
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

Case: TypeAlias = str | bool
Reads: TypeAlias = Mapping[
    str | tuple[str, ...], Mapping[Case | tuple[Case, ...], tuple[str, ...]]
]
"""The flags that are read only with certain values of others, as a dataclass of flags has
them in its `READS`: `{"spike": {"sparse": ("rho",)}}` says that `rho` is read if `spike` is
sparse, and `{"plot": {True: ("bars",)}}` that `bars` is read if `plot` is given. Several
flags that have to agree are a tuple, and so are their values. A flag that no table mentions
is always read."""


def flags_in(argv: Sequence[str]) -> set[str]:
    """The names of the flags on a command line that has been parsed, as the fields have
    them: `t_max` of `--t-max 5` and of `--t-max=5`, `quick` of `--no-quick`."""
    names = (word[2:].split("=")[0] for word in argv if word.startswith("--"))
    return {name.removeprefix("no-").replace("-", "_") for name in names}


def require_read(variants: Sequence[Any], given: Collection[str], where: str = "") -> None:
    """Refuses the first of the `given` flags that none of the `variants` reads.

    A variant is a dataclass of flags, possibly made of others. `where` is put before the
    flag's name.
    """
    unread = [_Unread(variant) for variant in variants]
    for name, value in unread[0].values.items():
        if name in given and all(name in one.names for one in unread):
            raise ValueError(
                f"{where}{name} = {_shown(value)} is not allowed: it is read only "
                f"{unread[0].readers(name)}. Leave it out."
            )


class _Unread:
    """The flags of a dataclass, by name, and those that nothing reads as it is."""

    def __init__(self, flags: Any):
        self.values: dict[str, Any] = {}
        self._rows: list[tuple[dict[str, Case], tuple[str, ...]]] = []
        for part in _parts(flags):
            for field in dataclasses.fields(part):
                value = getattr(part, field.name)
                if not dataclasses.is_dataclass(value):
                    self.values[field.name] = value
            self._rows += _rows(getattr(part, "READS", {}))
        opened = {name for _, names in self._rows for name in names}
        read = set(self.values) - opened
        # What is read may decide that more is: `rule` has `schedule` read, that has `tau`.
        for _ in self._rows:
            for need, names in self._rows:
                if all(n in read and self._has(n, case) for n, case in need.items()):
                    read |= set(names)
        self.names = set(self.values) - read

    def _has(self, name: str, case: Case) -> bool:
        value = self.values[name]
        if isinstance(case, bool):
            return bool(value) == case
        return case in value if isinstance(value, tuple) else value == case

    def readers(self, name: str) -> str:
        """With what the flag is read, in words."""
        # Rows that differ in one flag's choices are told together.
        told: dict[tuple[str, ...], dict[str, list[Case]]] = {}
        for need, names in self._rows:
            if name in names:
                choices = told.setdefault(tuple(need), {n: [] for n in need})
                for n, case in need.items():
                    choices[n] += [] if case in choices[n] else [case]
        ways = (
            " and ".join(_phrase(n, cases) for n, cases in choices.items())
            + self._outer(choices)
            for choices in told.values()
        )
        return ", or ".join(ways)

    def _outer(self, names: Collection[str]) -> str:
        """With what the flags that decide are read themselves, if not always."""
        hidden = [name for name in names if name in self.names]
        return "".join(f", which is read only {self.readers(name)}" for name in hidden)


def _parts(flags: Any) -> Iterator[Any]:
    """A dataclass and those that it is made of."""
    yield flags
    for field in dataclasses.fields(flags):
        if dataclasses.is_dataclass(value := getattr(flags, field.name)):
            yield from _parts(value)


def _rows(reads: Reads) -> Iterator[tuple[dict[str, Case], tuple[str, ...]]]:
    """Each case of the table: the values that it takes, by flag, and what is read then."""
    for deciding, table in reads.items():
        for case, names in table.items():
            decide = (deciding,) if isinstance(deciding, str) else deciding
            cases = case if isinstance(case, tuple) else (case,)
            yield dict(zip(decide, cases, strict=True)), names


def _phrase(name: str, cases: Sequence[Case]) -> str:
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
