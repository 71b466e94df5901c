"""`inopca reproduce`."""

import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from . import output


@dataclass(frozen=True)
class Reproduce:
    """Write a report with every figure and every claim of the paper. Figures that are
    stored there already are not computed again. A figure whose data are not available is
    left out. The exit code is 1 if a figure fails or a verdict differs from the recorded
    one."""

    figure: tuple[str, ...] = ()
    """The names of the figures to make, which are the paper's labels; by default all."""
    quick: bool = False
    """Fewer trials, no p-dimensional ones, and by default only four of the figures."""
    out: Path = Path("report")
    """The folder of the report."""
    progress: bool | None = None
    """Show a progress bar; by default if messages go to a terminal."""

    def run(self) -> None:
        from .._report.reproduce import disagreements, reproduce

        output.require_folder("out", self.out, self.out)
        bar = output.shows_progress(self.progress)
        results = reproduce(self.out, self.figure, self.quick, bar)
        for result in results:
            if result.unavailable:
                note = f"note: {result.name} is left out: {result.unavailable}"
                print(note, file=sys.stderr)
            if result.traceback:
                print(result.traceback, file=sys.stderr)
        verdicts = Counter(c.verdict for result in results for c in result.claims)
        for verdict, count in verdicts.items():
            print(f"{count:>4} of {verdicts.total()} claims: {verdict}")
        print(f"report: {self.out / 'index.html'}")
        if lines := disagreements(results):
            for line in lines:
                print(f"inopca: {line}", file=sys.stderr)
            raise SystemExit(1)
