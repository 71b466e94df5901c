"""Which steps to stop at: known before anything runs, decided on the host."""

from typing import NamedTuple

import numpy as np

from .._config import Config

MOST_STEPS = 2**31 - 2**20  # the counters are 32-bit and signed where JAX counts


class Phase(NamedTuple):
    """The stops of one phase, in groups of equal length, one group a call.

    `seen[i, j]` is the index of the observation at `stops[i, j]`, or -1: a stop may
    also end the phase, keep a call short, or fill up a group.
    """

    stops: np.ndarray
    seen: np.ndarray


def steps_at(ts: np.ndarray, clock: int) -> np.ndarray:
    """`floor(clock t)`, forgiving the rounding of `t`: 0.29 * 100 is 29, not 28."""
    exact = np.minimum(clock * np.asarray(ts, dtype=float), 2.0**62)
    whole = np.rint(exact)
    forgiven = 4 * np.finfo(ts.dtype).eps * exact
    return np.where(np.abs(exact - whole) <= forgiven, whole, np.floor(exact)).astype(
        np.int64
    )


def plan(config: Config, clock: int, steps_per_call: int) -> list[Phase]:
    """The phases of a run, each observation in the phase in force at its step; there are
    `clock` steps in a unit of time."""
    observed = steps_at(np.asarray(config.ts), clock)
    if observed[-1] > MOST_STEPS:
        end = float(config.ts[-1])
        room = 0.99 * MOST_STEPS  # so that what the message rounds is allowed, too
        raise ValueError(
            f"ts up to {end} at p = {config.model.p} is {clock * end:.4g} steps, and step "
            f"counters end at {MOST_STEPS}: shorten ts to {room / clock:.3g}, lower p to "
            f"{room // end:.0f}, or use Diffusion(), whose steps do not depend on p (with "
            "t0 > 0, or a b0 of order p, if the schedule has one)."
        )
    begins = np.concatenate([[0], steps_at(np.asarray(config.model.changes()), clock)])
    begins = begins[begins <= observed[-1]]
    ends = np.append(begins[1:], observed[-1])
    phase_of = np.searchsorted(begins, observed, side="right") - 1

    stops, seen = [], []
    for i, (begin, end) in enumerate(zip(begins, ends, strict=True)):
        mine = np.flatnonzero(phase_of == i)
        # At multiples of a power of two, so that no block of samples is cut by them.
        first = (begin // steps_per_call + 1) * steps_per_call
        extra = np.arange(first, end, steps_per_call)
        at = np.concatenate([observed[mine], extra, [end]])
        index = np.concatenate([mine, np.full(len(extra) + 1, -1)])
        order = np.argsort(at, kind="stable")
        stops.append(at[order])
        seen.append(index[order])
    return _grouped(begins, stops, seen, steps_per_call)


def _grouped(begins, stops, seen, steps_per_call: int) -> list[Phase]:
    legs = np.concatenate(
        [np.diff(at, prepend=begin) for begin, at in zip(begins, stops, strict=True)]
    )
    # One length for all groups, so that one program serves them all; and of few lengths,
    # powers of two, so that it serves most other runs, too.
    size = int(min(max(map(len, stops)), max(1, steps_per_call // max(1, legs.max()))))
    size = 2 ** (size.bit_length() - 1)
    phases = []
    for at, index in zip(stops, seen, strict=True):
        spare = -len(at) % size
        at = np.pad(at, (0, spare), mode="edge")
        index = np.pad(index, (0, spare), constant_values=-1)
        at = at.astype(np.int32).reshape(-1, size)
        phases.append(Phase(at, index.reshape(-1, size)))
    return phases
