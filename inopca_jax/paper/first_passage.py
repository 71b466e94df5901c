"""The time at which a path first reaches a level."""

import numpy as np


def time_to_reach(ts: np.ndarray, q: np.ndarray, level: float) -> np.ndarray:
    """Returns the time at which each row of `q` first reaches the level, interpolated
    between the times `ts`; infinite for a row that does not."""
    reached = q >= level
    first = np.argmax(reached, axis=1)
    before, rows = np.maximum(first - 1, 0), np.arange(len(q))
    low, high = q[rows, before], q[rows, first]
    part = np.divide(level - low, high - low, out=np.zeros(len(q)), where=high > low)
    times = ts[before] + np.clip(part, 0, 1) * (ts[first] - ts[before])
    return np.where(reached.any(axis=1), times, np.inf)
