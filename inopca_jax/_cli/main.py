"""The command line, `inopca`. It builds from plain numbers what Python users build."""

import os
import signal
import socket
import sys
import threading
import time
import warnings
from collections.abc import Sequence
from typing import Annotated, NoReturn

import tyro
from tyro.conf import OmitArgPrefixes, OmitSubcommandPrefixes, subcommand

from .._interrupt import deferred_interrupt
from .density import DensityCommand
from .fit import Fit
from .flags import flags_in, require_read
from .output import Failed
from .reproduce import Reproduce
from .simulate import Limits, Simulate
from .sweep import SweepCommand
from .tune import Tune

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
    """Returns the exit code: 0 if all is done; 1 if the command ran and failed, such as if
    all trials diverged or a figure could not be made; 2 for a request that cannot be met;
    130 for Ctrl-C."""
    argv = sys.argv[1:] if argv is None else argv
    command = tyro.cli(Command, prog="inopca", args=argv, description=__doc__)  # pyright: ignore
    try:
        require_read([command], flags_in(argv))
        with warnings.catch_warnings():
            warnings.simplefilter("default")
            # What packages deprecate of each other is no business of a command's user.
            for category in (DeprecationWarning, PendingDeprecationWarning, FutureWarning):
                warnings.simplefilter("ignore", category)
            warnings.showwarning = _note
            with deferred_interrupt():
                command.run()
    except BrokenPipeError:
        raise
    except Failed as failure:
        print(f"inopca: {failure}", file=sys.stderr)
        return 1
    except (ValueError, OSError, RuntimeError, ImportError) as error:
        print(f"inopca: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt as stop:
        print("inopca: stopped", *stop.args, sep="; ", file=sys.stderr)
        return 130
    return 0


def run_from_shell() -> NoReturn:
    """`main` in a process of its own, which Ctrl-C ends within `PATIENCE` seconds.

    The exit code is 141, and nothing is said, if the reader of the output has gone, such as
    `head` when it has its lines: as of other programs, which SIGPIPE ends.
    """
    _watch_for_interrupt()
    try:
        try:
            code = main()
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()  # here, where an error can be caught, not at the exit
    except BrokenPipeError:
        _forget_output()
        code = 141
    except OSError as error:
        _forget_output()
        print(f"inopca: {error}", file=sys.stderr)
        code = 2
    sys.exit(code)


def _forget_output() -> None:
    """Sends what is left of the output nowhere: Python flushes it once more as it exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


PATIENCE = 4.0
"""How many seconds a command has to stop by itself. It does not if XLA is compiling."""


def _watch_for_interrupt() -> None:
    # Python calls a signal's handler when the running C++ function returns, which may take
    # a while; but it writes the signal's number to this socket at once.
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    signal.set_wakeup_fd(writer.fileno())
    # The thread has the sockets as arguments, so that they stay open.
    watch = threading.Thread(
        target=_end_after_interrupt, args=(reader, writer), daemon=True
    )
    watch.start()


def _end_after_interrupt(reader: socket.socket, writer: socket.socket) -> None:
    while reader.recv(1) != bytes([signal.SIGINT]):
        pass
    time.sleep(PATIENCE)
    print("inopca: stopped", file=sys.stderr, flush=True)
    os._exit(130)  # not sys.exit: to take XLA apart while it compiles may crash


def _note(message, *_) -> None:
    print(f"note: {message}", file=sys.stderr)
