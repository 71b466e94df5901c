"""The moments of a sweep that matter if the process ends there.

Each is announced when it is reached, to `watch`, which does nothing. Tests put there what
kills the process, so that it dies at exactly that moment on any machine.
"""

import enum
from collections.abc import Callable


class Point(enum.StrEnum):
    STORE_MADE = "an empty store is made, under a name that nobody looks for"
    STORE_NAMED = "it has its name, which is not on the disk for sure"
    CLAIM_BURIED = "the claim of a dead process is renamed, and not yet removed"
    CLAIM_OPENED = "the file of a claim is there, and does not yet say whose it is"
    CLAIM_TAKEN = "the claim is whole"
    UNIT_BEGUN = "a thread is about to compute a unit"
    UNIT_COMPUTED = "nothing of the unit is written"
    RESULT_WRITTEN = "a result is in a file that nobody looks for"
    RESULT_SYNCED = "the file is on the disk for sure"
    RESULT_NAMED = "the file has its name"
    RESULTS_COMPLETE = "all results are on the disk for sure, and none is flagged"
    FLAG_WRITTEN = "a flag is in a file that nobody looks for"
    FLAG_SYNCED = "the file is on the disk for sure"
    FLAG_NAMED = "the file has its name: the cell is done"
    FLAGS_COMPLETE = "all flags are on the disk for sure, and the claim is still ours"
    CLAIM_RELEASED = "the claim is gone"


def _nothing(_: Point) -> None:
    pass


watch: Callable[[Point], None] = _nothing


def reach(point: Point) -> None:
    watch(point)
