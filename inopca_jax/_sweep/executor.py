"""Computes the units of a sweep on an executor: a pool of processes, or a cluster.

A job is the pickled sweep and the number of a unit, so that any worker can compute it. A
worker builds the sweep's programs once. It raises an error if its packages or its device
would give other bits than the process that sent the job.
"""

import pickle
import threading
from collections.abc import Mapping
from concurrent.futures import Executor, Future
from functools import lru_cache
from typing import Any

import jax
import numpy as np

from .._engine import AbstractEngine
from .._types import TrialKey
from .grid import Grid
from .manifest import describe
from .run import Run, Submit, Unit

_MACHINE_FIELDS = ("x64", "shape", "versions", "unit_cells")
"""The fields of a manifest that affect the bits and may differ between machines."""


def submit_to(
    executor: Executor,
    run: Run,
    manifest: Mapping[str, Any],
    key: TrialKey,
    engine: AbstractEngine,
) -> Submit:
    """Returns a function that submits a unit of the sweep to the executor."""
    axes = {axis.names: axis.values for axis in run.grid.axes}
    sweep = (run.grid.config, axes, engine, key, run.trials, run.observables, run.theory)
    try:
        pickled = pickle.dumps(sweep)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise ValueError(
            f"The sweep cannot be sent to an executor ({error}): define your own rule or "
            "other parts of the config in a module that the workers can import."
        ) from None
    expected = {name: manifest[name] for name in _MACHINE_FIELDS}

    def submit(unit: Unit, _: int) -> Future[np.ndarray]:
        return executor.submit(compute, pickled, expected, unit.number)

    return submit


def compute(pickled: bytes, expected: Mapping[str, Any], unit: int) -> np.ndarray:
    """Returns the results of a unit; this runs on a worker.

    **Arguments:**

    - `pickled`: the pickled sweep.
    - `expected`: the `_MACHINE_FIELDS` of the process that sent the job.
    - `unit`: the number of the unit.

    **Returns:**

    Shape `(cells, fields, times)`.
    """
    with _LOCK:
        run, manifest = _rebuild(pickled, bool(expected["x64"]))
    differ = [name for name in _MACHINE_FIELDS if manifest[name] != expected[name]]
    if differ:
        shown = "; ".join(f"{n}: {manifest[n]}, not {expected[n]}" for n in differ)
        raise ValueError(
            f"A worker of the executor would compute other bits ({shown}): give all "
            "workers the same packages and the same kind of device."
        )
    return run.compute_unit(run.unit(unit), run.devices[unit % len(run.devices)])


_LOCK = threading.Lock()
"""Only one thread of a worker builds the programs; the others wait for it."""


@lru_cache(maxsize=2)
def _rebuild(pickled: bytes, x64: bool) -> tuple[Run, dict[str, Any]]:
    """Returns the sweep's programs, and the manifest that they have on this machine."""
    with jax.enable_x64(x64):
        config, axes, engine, key, trials, observables, theory = pickle.loads(pickled)
        never = threading.Event()  # the process that sent the job handles Ctrl-C
        run = Run(Grid(config, axes), engine, key, trials, observables, theory, never)
        return run, describe(run, key, engine)
