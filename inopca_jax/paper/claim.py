"""A sentence of the paper and what comes out; a figure with its sentences."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

Verdict = Literal["holds", "holds with a condition", "does not hold"]


class Claim(NamedTuple):
    """Where it is said, what; our number and its error, the verdict that follows from
    them, the one that is on record, and why.

    The error is a standard error of Monte Carlo, or the tolerance that a numerical check
    has to stay under; 0 where the number is a count or exact.
    """

    where: str
    says: str
    number: float
    error: float
    found: str
    verdict: Verdict
    recorded: Verdict
    why: str


@dataclass(frozen=True)
class Made:
    """A figure that is done, or why it is not.

    `about` is what its module says of it. `missing` says why its data are not available.
    `failed` is the error in one line, with a `traceback` if it was raised by Python.
    """

    name: str
    about: str = ""
    claims: Sequence[Claim] = ()
    configs: Mapping[str, str] = field(default_factory=dict)
    drawn: Sequence[str] = ()
    missing: str = ""
    failed: str = ""
    traceback: str = ""


def verdict(holds: bool, otherwise: Verdict = "does not hold") -> Verdict:
    """What a check comes to: "holds", or `otherwise`."""
    return "holds" if holds else otherwise
