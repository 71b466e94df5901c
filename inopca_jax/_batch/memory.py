"""The memory that a run needs, and the memory that is available."""

import contextlib
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
from jaxtyping import PyTree

_SMALL_BYTES = 2**30
# Upper bounds of bytes per byte of state and per lane, from what the engines draw at a
# time: at most 64 samples of a Stream and 256 steps of a Chain.
_BYTES_PER_STATE_BYTE, _BYTES_PER_LANE = 100, 2**14


def free_bytes() -> int:
    """Returns the bytes that a process can allocate on this machine.

    The system reports fewer as free, because it counts its cache of files as used.
    """
    with contextlib.suppress(OSError, TypeError):
        match = re.search(r"MemAvailable: *(\d+) kB", Path("/proc/meminfo").read_text())
        return 1024 * int(match[1])  # pyright: ignore
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def host_room() -> float:
    """Returns the bytes of the host that a run may use: 80 % of the free ones."""
    return 0.8 * free_bytes()


def room_for_calls(workers: int) -> float:
    """Returns the bytes that a call of a compiled program may use, if `workers` call it."""
    stats = jax.local_devices()[0].memory_stats() or {}
    if "bytes_limit" in stats:
        return 0.9 * (stats["bytes_limit"] - stats.get("bytes_in_use", 0))
    return host_room() / workers


def bytes_of(shapes: PyTree) -> int:
    """Returns the bytes of arrays that have these shapes."""
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(shapes))


def is_small(lanes: int, state_bytes: int) -> bool:
    """Returns whether a call with so many lanes certainly needs less than a gibibyte."""
    return lanes * (_BYTES_PER_STATE_BYTE * state_bytes + _BYTES_PER_LANE) < _SMALL_BYTES


def call_bytes(program: Callable[..., Any], *shapes: Any) -> int:
    """Returns the bytes that a call of a program needs, for arguments of these shapes. The
    program is compiled for it."""
    use = jax.jit(program).lower(*shapes).compile().memory_analysis()
    sizes = ("argument", "output", "temp")
    return sum(getattr(use, f"{size}_size_in_bytes", 0) for size in sizes)


def gibibytes(count: int | float) -> str:
    return f"{count / 2**30:.2f} GiB"
