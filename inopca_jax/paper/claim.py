"""A statement of the paper with the numbers that it was checked against."""

from typing import Literal, NamedTuple

Verdict = Literal["holds", "holds with a condition", "does not hold"]


class Claim(NamedTuple):
    """A statement, the evidence for or against it, and the verdict.

    - `source`: where the paper makes the statement, by its label.
    - `statement`: the statement.
    - `number`: the number that decides.
    - `error`: its standard error over Monte Carlo trials, or the tolerance of a numerical
      check; 0 if the number is a count or exact.
    - `evidence`: what was computed, in words and numbers.
    - `verdict`: the verdict that follows from these numbers.
    - `recorded`: the verdict that is expected; a report that differs fails.
    - `explanation`: the reason, and what counts as holding.
    """

    source: str
    statement: str
    number: float
    error: float
    evidence: str
    verdict: Verdict
    recorded: Verdict
    explanation: str


def verdict(holds: bool, otherwise: Verdict = "does not hold") -> Verdict:
    """Returns "holds" if the check passed, else `otherwise`."""
    return "holds" if holds else otherwise
