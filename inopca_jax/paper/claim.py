"""Statements of the paper, and how they are checked against numbers."""

from collections.abc import Callable
from inspect import cleandoc
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from .labels import in_words

Arrays: TypeAlias = dict[str, np.ndarray]
Verdict = Literal["holds", "holds with a condition", "does not hold"]


class Claim(NamedTuple):
    """A statement, the evidence for or against it, and the verdict.

    - `source`: where the paper makes the statement, in words.
    - `statement`: the statement.
    - `number`: the number that decides.
    - `error`: its standard error over Monte Carlo trials, or the tolerance of a numerical
      check; 0 if the number is a count or exact.
    - `evidence`: what was computed, in words and numbers.
    - `verdict`: the verdict that follows from these numbers.
    - `recorded`: the verdict that is expected; a report that differs fails.
    - `explanation`: the reason, and what counts as holding.
    - `label`: where the paper makes the statement, by its LaTeX label.
    """

    source: str
    statement: str
    number: float
    error: float
    evidence: str
    verdict: Verdict
    recorded: Verdict
    explanation: str
    label: str = ""


class Finding(NamedTuple):
    """What a check computes: number, error and evidence of a `Claim`, and its verdict.

    - `holds`: whether the statement holds.
    - `conditional`: whether it holds with a condition, if it does not hold as it stands.
    - `recorded`: the expected verdict, if that depends on the numbers.
    """

    number: Any
    error: Any
    evidence: str
    holds: Any
    conditional: Any = False
    recorded: Verdict | None = None

    @property
    def verdict(self) -> Verdict:
        if self.holds:
            return "holds"
        return "holds with a condition" if self.conditional else "does not hold"


class Claims:
    """The claims about a figure, in the order in which they are added. A call with the
    figure's numbers checks all of them."""

    def __init__(self) -> None:
        self._checks: list[Callable[[Arrays], Claim]] = []

    def __call__(self, arrays: Arrays) -> list[Claim]:
        return [check(arrays) for check in self._checks]

    def add(
        self, label: str, recorded: Verdict = "holds", **options: Any
    ) -> Callable[[Callable[..., Finding]], Callable[[Arrays], Claim]]:
        """Returns a decorator that adds the claim which a function checks.

        The function's docstring has the fixed words of the claim: the statement, a blank
        line, and the explanation. Names in braces are replaced by the option of this name.

        **Arguments:**

        - `label`: where the paper makes the statement. Words may surround LaTeX labels.
        - `recorded`: the expected verdict.
        - `options`: keyword arguments of the function, which is called with the figure's
            numbers and these.

        **Returns:**

        A decorator. In place of the function it returns one from the figure's numbers to
        the `Claim`.
        """

        def decorator(check: Callable[..., Finding]) -> Callable[[Arrays], Claim]:
            words = cleandoc(str(check.__doc__)).format(**options)
            statement, _, explanation = in_words(words).partition("\n\n")

            def checked(arrays: Arrays) -> Claim:
                finding = check(arrays, **options)
                source = in_words(label)
                return Claim(
                    source[:1].upper() + source[1:],
                    " ".join(statement.split()).removesuffix("."),
                    float(finding.number),
                    float(finding.error),
                    in_words(finding.evidence),
                    finding.verdict,
                    finding.recorded or recorded,
                    " ".join(explanation.split()),
                    label,
                )

            self._checks.append(checked)
            return checked

        return decorator
