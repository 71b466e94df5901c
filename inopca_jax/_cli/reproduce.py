"""`inopca reproduce`."""

import sys
from dataclasses import dataclass
from pathlib import Path

from . import output


@dataclass(frozen=True)
class Reproduce:
    """The paper: every figure, every claim, in a report. What has been computed is not
    computed again. A figure whose data are not available is left out. The exit code is 1
    if a figure fails or a verdict differs from the one on record."""

    figure: tuple[str, ...] = ()
    """Some of the figures, by the paper's labels; all if none is named."""
    quick: bool = False
    """Fewer trials, no p-dimensional ones, and, if none is named, four of the figures."""
    out: Path = Path("report")
    """The folder of the report."""
    progress: bool | None = None
    """Show a progress bar; by default if the output is a terminal."""

    def run(self) -> None:
        from ..paper.reproduce import disagreements, reproduce

        output.require_folder("out", self.out, self.out)
        bar = sys.stderr.isatty() if self.progress is None else self.progress
        results = reproduce(self.out, self.figure, self.quick, bar)
        for made in results:
            if made.missing:
                print(f"note: {made.name} is left out: {made.missing}", file=sys.stderr)
            if made.traceback:
                print(made.traceback, file=sys.stderr)
        claims = [claim for made in results for claim in made.claims]
        for verdict in dict.fromkeys(claim.verdict for claim in claims):
            count = sum(claim.verdict == verdict for claim in claims)
            print(f"{count:>4} of {len(claims)} claims: {verdict}")
        print(f"report: {self.out / 'index.html'}")
        if wrong := disagreements(results):
            for line in wrong:
                print(f"inopca: {line}", file=sys.stderr)
            raise SystemExit(1)
