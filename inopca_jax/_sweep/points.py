"""The moments of a sweep that matter if the process ends there.

Each is announced when it is reached, to `watch`, which does nothing. Tests put there what
kills the process, so that it dies at exactly that moment on any machine.
"""

import enum
from collections.abc import Callable


@enum.unique
class Point(enum.StrEnum):
    STORE_MADE = "an empty store is made, under a name that nobody looks for"
    STORE_NAMED = "it has its name, which is not on the disk for sure"
    LEASE_SET_ASIDE = "the lease of a dead process is renamed, and not yet removed"
    LEASE_OPENED = "the file of a lease is there, and does not yet say whose it is"
    LEASE_TAKEN = "the lease is whole"
    UNIT_BEGUN = "a thread is about to compute a unit"
    UNIT_COMPUTED = "nothing of the unit is written"
    RESULT_WRITTEN = "the unit's results are in a file that nobody looks for"
    RESULT_SYNCED = "the file is on the disk for sure"
    RESULT_NAMED = "the file has its name"
    RESULT_COMPLETE = "the results are on the disk for sure, and not flagged"
    FLAG_WRITTEN = "the flag is in a file that nobody looks for"
    FLAG_SYNCED = "the file of the flag is on the disk for sure"
    FLAG_NAMED = "the file has its name: the unit is done"
    FLAG_COMPLETE = "the flag is on the disk for sure, and the lease is still ours"
    LEASE_RELEASED = "the lease is gone"


def _nothing(_: Point) -> None:
    pass


watch: Callable[[Point], None] = _nothing


def reach(point: Point) -> None:
    watch(point)
