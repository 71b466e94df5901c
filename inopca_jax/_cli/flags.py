"""The names of flags, and which flags a command reads."""

import dataclasses
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

Reads: TypeAlias = Mapping[str, Sequence[Mapping[str, str | bool | tuple[str, ...]]]]
"""The type of `READS`, a table in a dataclass of flags that says which flags are read only
with certain values of others. `{"rho": [{"spike": "sparse"}]}`: `rho` is read only if
`spike` is sparse. `{"bars": [{"plot": True}]}`: `bars` is read only if `plot` is given.
A tuple has several allowed values; of several dicts in the list one has to be true, and of
the entries of a dict all. A flag that is in no table is always read."""


def as_typed(name: str) -> str:
    """Returns a flag as it is typed: `--t-max` for the field `t_max`."""
    return f"--{name.replace('_', '-')}"


def flags_in(argv: Sequence[str]) -> set[str]:
    """Returns the flags on a command line, by the names of their fields.

    That is `t_max` for `--t-max 5` and `--t-max=5`, and `quick` for `--no-quick`.
    """
    names = (word[2:].split("=")[0] for word in argv if word.startswith("--"))
    return {name.removeprefix("no-").replace("-", "_") for name in names}


def with_typed_flags(message: str, flags: Any) -> str:
    """Returns an error in which the flags of a command are as they are typed: `--t-max -1`
    for `t_max = -1`."""
    names = "|".join(
        field.name
        for part in _nested(flags)
        for field in dataclasses.fields(part)
        if not hasattr(field.type, "__metadata__")  # a positional argument has no flag
    )
    typed = lambda match: f"{as_typed(match[1])} "
    return re.sub(rf"(?<![\w.'-])({names}) = ", typed, message)


def require_read(variants: Sequence[Any], given: Collection[str], where: str = "") -> None:
    """Raises a `ValueError` for the first of the `given` flags that is not read.

    **Arguments:**

    - `variants`: dataclasses of flags, possibly nested. A flag counts as read if one of
        them reads it.
    - `given`: the names of the flags that the user has set.
    - `where`: the prefix of a name in a file; by default names are flags of a command.
    """
    checks = [_FlagCheck(variant, where) for variant in variants]
    for name, value in checks[0].values.items():
        if name in given and not any(check.is_read(name) for check in checks):
            raise ValueError(
                f"{where}{checks[0].shown(name, value)} is not allowed: it is read only "
                f"{checks[0].conditions_of(name)}. Leave it out."
            )


class _FlagCheck:
    """The values of the flags in a dataclass, and the conditions under which each is
    read."""

    def __init__(self, flags: Any, where: str):
        self.values: dict[str, Any] = {}
        self._reads: dict[str, Any] = {}
        self._in_file = bool(where)
        for part in _nested(flags):
            fields = dataclasses.fields(part)
            self.values |= {field.name: getattr(part, field.name) for field in fields}
            self._reads |= getattr(part, "READS", {})

    def is_read(self, name: str) -> bool:
        # A conditional flag may itself be a condition: `tau` is read only if `schedule`
        # is, which is read only with some rules.
        return name not in self._reads or any(
            all(self.is_read(n) and self._has(n, case) for n, case in conditions.items())
            for conditions in self._reads[name]
        )

    def _has(self, name: str, case: Any) -> bool:
        """Whether a flag has the value of a condition."""
        value = self.values[name]
        if isinstance(case, bool):
            return bool(value) == case
        values = value if isinstance(value, tuple) else (value,)
        return any(v in (case if isinstance(case, tuple) else (case,)) for v in values)

    def conditions_of(self, name: str) -> str:
        """Returns the conditions under which a flag is read, in words."""
        phrases = []
        for conditions in self._reads[name]:
            phrases.append(" and ".join(self._phrase(*item) for item in conditions.items()))
            unread = [n for n in conditions if not self.is_read(n)]
            for outer in unread:
                phrases[-1] += f", which is read only {self.conditions_of(outer)}"
        return ", or ".join(phrases)

    def _phrase(self, name: str, case: Any) -> str:
        """Returns the condition that a flag has one of some values, in words."""
        if isinstance(case, bool):
            return f"{'with' if case else 'without'} {self.shown(name, True)}"
        *others, last = case if isinstance(case, tuple) else (case,)
        values = f"{', '.join(others)}{' or ' if others else ''}{last}"
        return f"with {self.shown(name, values)}"

    def shown(self, name: str, value: Any) -> str:
        """Returns a flag with its value, as it is typed or as a line of a file."""
        if isinstance(value, tuple):
            value = " ".join(map(str, value))
        if self._in_file:
            return f"{name} = {value}"
        if isinstance(value, bool):
            return as_typed(name if value else f"no-{name}")
        return f"{as_typed(name)} {value}"


def _nested(flags: Any) -> Iterator[Any]:
    """Yields a dataclass and all dataclasses in its fields."""
    yield flags
    for field in dataclasses.fields(flags):
        if dataclasses.is_dataclass(value := getattr(flags, field.name)):
            yield from _nested(value)
