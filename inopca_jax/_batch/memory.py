"""How much memory a run takes, and how much there is."""

import contextlib
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
from jaxtyping import PyTree

_SMALL = 2**30
# Of a lane, for each byte of its state and besides: bounds from what the engines draw at a
# time, at most 64 samples of a Stream and 256 steps of a Chain.
_BYTES_A_STATE_BYTE, _BYTES_A_LANE = 100, 2**14


def free_bytes() -> int:
    """The bytes that a process can get here. What the system calls free is less: a cache
    of files gives way, and may have filled all."""
    with contextlib.suppress(OSError, TypeError):
        found = re.search(r"MemAvailable: *(\d+) kB", Path("/proc/meminfo").read_text())
        return 1024 * int(found[1])  # pyright: ignore
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def host_room() -> float:
    """The bytes of the host that may be taken: most of what is free."""
    return 0.8 * free_bytes()


def room_for_calls(workers: int) -> float:
    """The bytes that a call of a compiled program may take, if so many workers call it."""
    stats = jax.local_devices()[0].memory_stats() or {}
    if "bytes_limit" in stats:
        return 0.9 * (stats["bytes_limit"] - stats.get("bytes_in_use", 0))
    return host_room() / workers


def bytes_of(shapes: PyTree) -> int:
    """The bytes of arrays that have these shapes."""
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(shapes))


def is_small(lanes: int, state_bytes: int) -> bool:
    """Whether a call with so many lanes takes less than a gigabyte for sure."""
    return lanes * (_BYTES_A_STATE_BYTE * state_bytes + _BYTES_A_LANE) < _SMALL


def call_bytes(program: Callable[..., Any], *shapes: Any) -> int:
    """The bytes that a call of a program with arguments of these shapes takes. To know it
    takes a compilation."""
    use = jax.jit(program).lower(*shapes).compile().memory_analysis()
    sizes = ("argument", "output", "temp")
    return sum(getattr(use, f"{size}_size_in_bytes", 0) for size in sizes)


def gibibytes(count: int | float) -> str:
    return f"{count / 2**30:.2f} GiB"
