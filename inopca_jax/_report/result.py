"""What became of one figure of the report."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..paper.claim import Claim


@dataclass(frozen=True)
class FigureResult:
    """The result of making one figure, or the reason why there is none.

    - `name`: the figure's name.
    - `claims`: its claims.
    - `configs`: the configs that it was computed for, as text.
    - `drawings`: the names of the files that were drawn, without their ending.
    - `unavailable`: why its data are not available; empty if they are.
    - `failure`: the error in one line; empty if there was none.
    - `traceback`: the traceback of the error, if Python raised it.
    """

    name: str
    claims: Sequence[Claim] = ()
    configs: Mapping[str, str] = field(default_factory=dict)
    drawings: Sequence[str] = ()
    unavailable: str = ""
    failure: str = ""
    traceback: str = ""
