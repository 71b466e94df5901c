"""Means over trials with their errors, and the times at which paths reach a level."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

# A difference of more standard errors than this is significant.
SIGNIFICANT = 4.0


@dataclass(frozen=True)
class Mean:
    """A mean, or what follows from means, and its standard error; numbers or arrays.

    The error of a difference or a ratio is that of independent means. Formatted numbers
    show both, as in `0.71 +- 0.02`.
    """

    value: Any
    error: Any

    def __sub__(self, other: Any) -> "Mean":
        if not isinstance(other, Mean):
            return Mean(self.value - other, self.error)
        return Mean(self.value - other.value, np.hypot(self.error, other.error))

    def __truediv__(self, other: Any) -> "Mean":
        if not isinstance(other, Mean):
            return Mean(self.value / other, self.error / abs(other))
        ratio = self.value / other.value
        relative = np.hypot(self.error / self.value, other.error / other.value)
        return Mean(ratio, abs(ratio) * relative)

    def __getitem__(self, index: Any) -> "Mean":
        return Mean(self.value[index], self.error[index])

    def __format__(self, form: str) -> str:
        return f"{self.value:{form}} +- {self.error:{form}}"

    @property
    def standard_errors(self) -> Any:
        """The mean in units of its standard error."""
        return self.value / self.error

    @property
    def is_significant(self) -> bool:
        """Whether the mean, a number, differs from 0 by more than `SIGNIFICANT` errors."""
        return bool(abs(self.value) > SIGNIFICANT * self.error)


def mean_of(trials: Any, axis: int = 0) -> Mean:
    """Returns the mean over trials, which are along an axis."""
    trials = np.asarray(trials, float)
    error = trials.std(axis=axis, ddof=1) / trials.shape[axis] ** 0.5
    return Mean(trials.mean(axis=axis), error)


def std_of(trials: Any) -> Mean:
    """Returns the standard deviation over trials, which are along the first axis, and its
    standard error from the fourth moment."""
    trials = np.asarray(trials, float)
    centred = trials - trials.mean(axis=0)
    variance = np.mean(centred**2, axis=0)
    spread = np.mean(centred**4, axis=0) - variance**2
    error = np.sqrt(spread / len(trials) / np.maximum(4 * variance, 1e-300))
    return Mean(trials.std(axis=0, ddof=1), error)


def power_of(x: np.ndarray, y: np.ndarray) -> float:
    """Returns the power of x as which y grows, by a fit to all values."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


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


def listed(values: Iterable[Any], form: str = "g") -> str:
    """Returns the formatted values, separated by commas."""
    return ", ".join(format(value, form) for value in values)
