"""Ctrl-C that is handled where it is safe to stop."""

import contextlib
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

INSIST = 2.0
"""If Ctrl-C is pressed again after this many seconds, `KeyboardInterrupt` is raised at
once, wherever the program is. A second one that comes sooner is ignored."""


class _Deferring:
    """A signal handler that sets an event, and raises if Ctrl-C is pressed again later."""

    def __init__(self) -> None:
        self.event = threading.Event()
        self._first_time = 0.0

    def __call__(self, *_: Any) -> None:
        if not self.event.is_set():
            self._first_time = time.monotonic()
            self.event.set()
        elif time.monotonic() - self._first_time > INSIST:
            raise KeyboardInterrupt


@contextlib.contextmanager
def deferred_interrupt() -> Iterator[threading.Event]:
    """Yields an event that Ctrl-C sets inside the block; at its end `KeyboardInterrupt` is
    raised.

    A long loop checks the event and raises `KeyboardInterrupt` itself. Without this, Python
    raises it in the middle of a compilation, XLA's threads continue, and the process may
    crash when it exits. Nested blocks share the outermost event. In other threads than the
    main one, and if the program has its own handler of Ctrl-C, nothing changes.
    """
    previous = signal.getsignal(signal.SIGINT)
    if isinstance(previous, _Deferring):
        yield previous.event
        return
    on_main_thread = threading.current_thread() is threading.main_thread()
    if not on_main_thread or previous is not signal.default_int_handler:
        yield threading.Event()
        return
    handler = _Deferring()
    signal.signal(signal.SIGINT, handler)
    try:
        yield handler.event
    finally:
        signal.signal(signal.SIGINT, previous)
    if handler.event.is_set():
        raise KeyboardInterrupt
