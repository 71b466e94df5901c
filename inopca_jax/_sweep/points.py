"""The points of a sweep at which tests kill or pause the process.

The sweep calls `reach` at each of them. `reach` calls `watch`, which does nothing unless a
test replaces it; so a test can stop the process at exactly that point on any machine.
"""

import enum
from collections.abc import Callable


@enum.unique
class Point(enum.StrEnum):
    """What has been done when the point is reached, and what has not.

    "Synced" means that the operating system was asked to write to the disk (`fsync`).
    """

    STORE_MADE = "an empty store is written under a temporary name"
    STORE_NAMED = "the store has its final name; the rename is not synced"
    LEASE_SET_ASIDE = "the lease of a dead process is renamed, and not yet removed"
    LEASE_OPENED = "the file of a lease exists, and does not yet name its owner"
    LEASE_TAKEN = "the file of the lease is complete"
    UNIT_BEGUN = "a thread is about to compute a unit"
    UNIT_COMPUTED = "the unit is computed, and nothing of it is written"
    RESULT_WRITTEN = "the results are in a file with a temporary name"
    RESULT_SYNCED = "the file of the results is synced"
    RESULT_NAMED = "the file of the results has its final name"
    RESULT_COMPLETE = "the results are synced, and have no flag"
    FLAG_WRITTEN = "the flag is in a file with a temporary name"
    FLAG_SYNCED = "the file of the flag is synced"
    FLAG_NAMED = "the file of the flag has its final name: the unit is done"
    FLAG_COMPLETE = "the flag is synced, and the lease is not yet released"
    LEASE_RELEASED = "the lease is removed"


def _nothing(_: Point) -> None:
    pass


watch: Callable[[Point], None] = _nothing


def reach(point: Point) -> None:
    """Tells `watch` that the sweep has come to a point."""
    watch(point)
