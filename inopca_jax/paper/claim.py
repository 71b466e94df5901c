"""A sentence of the paper and what comes out."""

from typing import Literal, NamedTuple

Verdict = Literal["holds", "holds with a condition", "does not hold"]


class Claim(NamedTuple):
    """Where it is said, what; the numbers, the verdict that follows from them, and why."""

    where: str
    says: str
    found: str
    verdict: Verdict
    why: str
