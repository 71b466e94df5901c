"""Units of a sweep as jobs for an executor: a pool of processes, or a cluster's.

A job is bytes and a number, so that any worker can take it. A worker makes the sweep's
programs once, and refuses if they would not have the bits of those that sent the job.
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

_DECIDING = ("x64", "shape", "versions", "unit_cells")
"""What of a manifest may differ on another machine, and decides the bits."""


def submit_to(
    executor: Executor,
    run: Run,
    manifest: Mapping[str, Any],
    key: TrialKey,
    engine: AbstractEngine,
) -> Submit:
    """How to have the units of a sweep computed by an executor."""
    axes = {axis.names: axis.values for axis in run.grid.axes}
    sweep = (run.grid.config, axes, engine, key, run.trials, run.observables, run.theory)
    try:
        job = pickle.dumps(sweep)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise ValueError(
            f"The sweep cannot be sent to an executor ({error}): define its rule and other "
            "parts of your own in a module that the workers can import."
        ) from None
    decides = {name: manifest[name] for name in _DECIDING}

    def submit(unit: Unit, _: int) -> Future[np.ndarray]:
        return executor.submit(compute, job, decides, unit.number)

    return submit


def compute(job: bytes, decides: Mapping[str, Any], number: int) -> np.ndarray:
    """A worker's part: the results of a unit."""
    with _LOCK:
        run, manifest = _made(job, bool(decides["x64"]))
    here = {name: manifest[name] for name in _DECIDING}
    differ = [name for name in _DECIDING if here[name] != decides[name]]
    if differ:
        shown = "; ".join(f"{n}: {here[n]}, not {decides[n]}" for n in differ)
        raise ValueError(
            f"A worker of the executor would compute other bits ({shown}): give all "
            "workers the same packages and the same kind of device."
        )
    return run.one(run.unit(number), run.devices[number % len(run.devices)])


_LOCK = threading.Lock()
"""Of a worker's threads, one makes the programs."""


@lru_cache(maxsize=2)
def _made(job: bytes, x64: bool) -> tuple[Run, dict[str, Any]]:
    with jax.enable_x64(x64):
        config, axes, engine, key, trials, observables, theory = pickle.loads(job)
        never = threading.Event()  # Ctrl-C is for the process that sent the job
        run = Run(Grid(config, axes), engine, key, trials, observables, theory, never)
        return run, describe(run, key, engine)
