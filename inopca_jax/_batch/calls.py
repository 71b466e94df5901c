"""Which stops go into which call of a compiled program, decided before a run."""

from typing import NamedTuple

import numpy as np

from .._config import Config
from .._engine.base import AbstractPreparedEngine
from .._engine.trial import require_countable
from .._timeline import segments


class Calls(NamedTuple):
    """The calls of one segment, each with the same number of stops.

    **Arguments:**

    - `stops`: the numbers of steps to stop at, of shape (calls, stops).
    - `rows`: the index of the observation at each stop, of the same shape, -1 for none. A
      stop without an observation ends the segment, keeps a call short, or fills up a call.
    """

    stops: np.ndarray
    rows: np.ndarray


def plan_calls(
    config: Config,
    engine: AbstractPreparedEngine,
    steps_per_call: int,
    stops_per_call: int | None = None,
) -> list[Calls]:
    """Returns the calls of all segments.

    **Arguments:**

    - `config`, `engine`: what is run.
    - `steps_per_call`: the most steps of a call.
    - `stops_per_call`: how many stops a call has, by default what `most_stops` returns.
    """
    stops_of_segments = _stops(config, engine, steps_per_call)
    if stops_per_call is None:
        stops_per_call = _most_stops(stops_of_segments, steps_per_call)
    calls = []
    for _, stops, rows in stops_of_segments:
        missing = -len(stops) % stops_per_call
        stops = np.pad(stops, (0, missing), mode="edge").astype(np.int32)
        rows = np.pad(rows, (0, missing), constant_values=-1)
        shape = (-1, stops_per_call)
        calls.append(Calls(stops.reshape(shape), rows.reshape(shape)))
    return calls


def most_stops(config: Config, engine: AbstractPreparedEngine, steps_per_call: int) -> int:
    """Returns how many stops fit into a call: a power of eight, so that few programs serve
    all runs."""
    return _most_stops(_stops(config, engine, steps_per_call), steps_per_call)


def _most_stops(segments, steps_per_call: int) -> int:
    longest = max(np.max(np.diff(stops, prepend=begin)) for begin, stops, _ in segments)
    most = max(len(stops) for _, stops, _ in segments)
    fit = int(min(most, max(1, steps_per_call // max(1, longest))))
    # A loop over one stop is compiled without the loop, and rounds differently.
    return max(2, 8 ** ((fit.bit_length() - 1) // 3))


def _stops(config: Config, engine: AbstractPreparedEngine, steps_per_call: int):
    """Returns for every segment the step at which it begins, its stops and their rows."""
    steps_per_time = engine.steps_per_time(config.model.p)
    require_countable(config, steps_per_time)
    ts = np.asarray(config.ts)
    stops_of_segments = []
    for segment in segments(config, ts):
        segment = segment.in_steps(steps_per_time, ts.dtype)
        rows = np.flatnonzero(segment.observed)
        # At multiples of a power of two, so that no block of samples is cut by them.
        first = (segment.begin // steps_per_call + 1) * steps_per_call
        extra = np.arange(first, segment.end, steps_per_call)
        stops = np.concatenate([segment.ts[rows], extra, [segment.end]])
        rows = np.concatenate([rows, np.full(len(extra) + 1, -1)])
        order = np.argsort(stops, kind="stable")
        stops_of_segments.append((segment.begin, stops[order], rows[order]))
    return stops_of_segments
