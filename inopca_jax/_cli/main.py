"""The command line of inopca_jax: simulations, theory, tuning and PCA of data.

`inopca --version` prints the version. To complete commands and flags in bash, run once:

    inopca --tyro-write-completion bash ~/.inopca; echo . ~/.inopca >> ~/.bashrc
"""

import importlib.metadata
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
from tyro.conf import DisallowNone, OmitArgPrefixes, OmitSubcommandPrefixes, subcommand

from .._interrupt import deferred_interrupt
from .density import DensityCommand
from .fit import Fit
from .flags import flags_in, require_read, with_typed_flags
from .output import Failed
from .reproduce import Reproduce
from .simulate import Limits, Simulate
from .sweep import SweepCommand
from .tune import Tune

# Without `DisallowNone` a flag of type `bool | None` would take a word instead of being a
# switch.
Command = DisallowNone[
    OmitSubcommandPrefixes[
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
]


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command and returns its exit code.

    0: success. 1: the command ran and failed, for example because all trials diverged or a
    figure could not be made. 2: the arguments or the files are not valid. 130: Ctrl-C.
    """
    argv = sys.argv[1:] if argv is None else argv
    if list(argv) == ["--version"]:
        print(importlib.metadata.version("inopca_jax"))
        return 0
    command = tyro.cli(Command, prog="inopca", args=argv, description=__doc__)  # pyright: ignore
    try:
        require_read([command], flags_in(argv))
        with warnings.catch_warnings():
            warnings.simplefilter("default")
            # Deprecations between packages do not concern the user of a command.
            for category in (DeprecationWarning, PendingDeprecationWarning, FutureWarning):
                warnings.simplefilter("ignore", category)
            warnings.showwarning = _print_warning
            with deferred_interrupt():
                command.run()
    except BrokenPipeError:
        raise
    except Failed as failure:
        print(f"inopca: {failure}", file=sys.stderr)
        return 1
    except (ValueError, OSError, RuntimeError, ImportError) as error:
        print(f"inopca: {with_typed_flags(str(error), command)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt as stop:
        print("inopca: stopped", *stop.args, sep="; ", file=sys.stderr)
        return 130
    return 0


def run_from_shell() -> NoReturn:
    """Runs `main` as a process that ends at most `PATIENCE` seconds after Ctrl-C.

    If the reader of the output has ended, such as `head`, the exit code is 141 and nothing
    is printed, as of other programs that end by SIGPIPE.
    """
    _start_interrupt_watch()
    _avoid_colours()
    try:
        try:
            code = main()
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()  # here, as an error at the exit could not be caught
    except BrokenPipeError:
        _discard_output()
        code = 141
    except OSError as error:
        _discard_output()
        print(f"inopca: {error}", file=sys.stderr)
        code = 2
    sys.exit(code)


def _avoid_colours() -> None:
    """Lets tyro print without colours if the user asks for it, as https://no-color.org
    says, or if a file receives what is printed."""
    streams = (sys.stdout, sys.stderr)
    are_terminals = all(stream is not None and stream.isatty() for stream in streams)
    if os.environ.get("NO_COLOR") or not are_terminals:
        os.environ["TERM"] = "dumb"


def _discard_output() -> None:
    """Discards the buffered output, which Python would flush again as it exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


PATIENCE = 4.0
"""How many seconds after Ctrl-C the process is ended, if it has not stopped by itself. It
does not while XLA compiles."""


def _start_interrupt_watch() -> None:
    """Starts a thread that ends the process `PATIENCE` seconds after Ctrl-C."""
    # Python calls a signal's handler only after the running C++ function has returned,
    # which may take long; but it writes the signal's number to this socket at once.
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    signal.set_wakeup_fd(writer.fileno())
    # The sockets are arguments of the thread, so that they stay open.
    arguments = (reader, writer)
    threading.Thread(target=_end_after_interrupt, args=arguments, daemon=True).start()


def _end_after_interrupt(reader: socket.socket, writer: socket.socket) -> None:
    while reader.recv(1) != bytes([signal.SIGINT]):
        pass
    time.sleep(PATIENCE)
    print("inopca: stopped", file=sys.stderr, flush=True)
    os._exit(130)  # not sys.exit, which may crash while XLA compiles


def _print_warning(message, *_) -> None:
    print(f"note: {message}", file=sys.stderr)
