"""Ctrl-C, heard where it is safe to stop."""

import contextlib
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

INSIST = 2.0
"""After how many seconds a second Ctrl-C is raised wherever the program is. One that comes
sooner is taken for the same."""


class _Deferring:
    """A signal handler that sets an event; it raises only if the user insists."""

    def __init__(self) -> None:
        self.event = threading.Event()
        self._first = 0.0

    def __call__(self, *_: Any) -> None:
        if not self.event.is_set():
            self._first = time.monotonic()
            self.event.set()
        elif time.monotonic() - self._first > INSIST:
            raise KeyboardInterrupt


@contextlib.contextmanager
def deferred_interrupt() -> Iterator[threading.Event]:
    """Inside, Ctrl-C sets the event that is yielded; `KeyboardInterrupt` comes at the end.

    A long loop looks at the event and raises `KeyboardInterrupt` itself. Without this,
    Python raises it in the middle of a compilation, XLA's threads go on, and the process
    may crash when it exits. Nested uses share the outermost event. Off the main thread,
    and where the program has a handler of its own, nothing changes.
    """
    present = signal.getsignal(signal.SIGINT)
    if isinstance(present, _Deferring):
        yield present.event
        return
    on_main_thread = threading.current_thread() is threading.main_thread()
    if not on_main_thread or present is not signal.default_int_handler:
        yield threading.Event()
        return
    handler = _Deferring()
    signal.signal(signal.SIGINT, handler)
    try:
        yield handler.event
    finally:
        signal.signal(signal.SIGINT, present)
    if handler.event.is_set():
        raise KeyboardInterrupt
