"""The command line, `inopca`. It builds from plain numbers what Python users build."""

import sys
import warnings
from collections.abc import Sequence
from typing import Annotated

import tyro
from tyro.conf import OmitArgPrefixes, OmitSubcommandPrefixes, subcommand

from ._command.density import DensityCommand
from ._command.fit import Fit
from ._command.reproduce import Reproduce
from ._command.simulate import Limits, Simulate
from ._command.sweep import SweepCommand
from ._command.tune import Tune

Command = OmitSubcommandPrefixes[
    OmitArgPrefixes[
        Annotated[Simulate, subcommand(name="simulate")]
        | Annotated[Limits, subcommand(name="limits")]
        | Annotated[DensityCommand, subcommand(name="density")]
        | Annotated[Tune, subcommand(name="tune")]
        | Annotated[Fit, subcommand(name="fit")]
        | Annotated[Reproduce, subcommand(name="reproduce")]
        | Annotated[SweepCommand, subcommand(name="sweep")]
    ]
]


def main(argv: Sequence[str] | None = None) -> int:
    """Returns the exit code: 0, 2 for a request that cannot be met, 130 for Ctrl-C."""
    command = tyro.cli(Command, prog="inopca", args=argv, description=__doc__)  # pyright: ignore
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("default")
            warnings.showwarning = _note
            command.run()
    except (ValueError, OSError, RuntimeError, ImportError) as error:
        print(f"inopca: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("inopca: stopped; nothing was written", file=sys.stderr)
        return 130
    return 0


def _note(message, *_) -> None:
    print(f"note: {message}", file=sys.stderr)
