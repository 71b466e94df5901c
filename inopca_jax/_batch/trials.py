"""Monte Carlo trials of one config."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from tqdm import tqdm

from .._check import Checked, is_known, require_instance, require_key, require_whole
from .._components import SeveralComponents, as_result
from .._config import Config
from .._engine import AbstractEngine, Chain, defaults
from .._interrupt import deferred_interrupt
from .._order_parameters.initial import start_moments
from .._start import require_norm
from .._trajectory import Snapshots, Trajectory
from .._types import TrialKey
from . import memory
from .batch import Batch, Observations


def simulate(
    config: Checked[Config],
    *,
    key: Checked[TrialKey],
    trials: Checked[int] = 20,
    engine: Checked[AbstractEngine | None] = None,
    progress: Any = False,
) -> Trajectory | Snapshots | SeveralComponents:
    """Returns Monte Carlo trials of a config, on all cores or on the default device.

    On one machine, with the same versions, the same key and config give the same bits, and
    trial `i` is the same however many are run. Other times of observation, or another chunk
    of the engine, change a run by rounding alone. Ctrl-C stops between two calls of a
    compiled program, each of about a second at most. A loop on the host runs the calls, so
    that this function cannot be jitted, vmapped or differentiated; `simulate_trial` can.

    **Arguments:**

    - `config`: what to run.
    - `key`: a key of `jax.random`.
    - `trials`: how many trials.
    - `engine`: how to simulate, by default `Chain()`.
    - `progress`: whether to show a progress bar.

    **Returns:**

    A `Trajectory` with arrays of shape (trials, times), or `Snapshots` if the engine is
    asked for them; a `ComponentTrajectory` or `ComponentSnapshots` if there are several
    spikes or components. A run is observed after `floor(p t)` samples. A trial that
    diverges is flagged by `finite` and affects no other.

    **Example:**

    ```pycon
    >>> import jax.random as jr
    >>> import inopca_jax as ino
    >>> config = ino.Config(model=ino.SpikedModel(p=100), ts=[0.0, 1.0, 2.0])
    >>> runs = ino.simulate(config, key=jr.key(0), trials=4)
    >>> runs.q.shape, runs.std().lam.shape
    ((4, 3), (3,))
    ```
    """
    engine = Chain() if engine is None else engine
    trials = require_whole("trials", trials, 1, "pass a whole number of trials, at least 1")
    _require_runnable(config, engine, key)
    tile = engine.prepare(config).tile
    tiles = defaults.tiles_per_call(-(-trials // tile))
    batch = Batch(engine, config, tiles, one_config=True)
    bar = tqdm(
        total=batch.steps * trials,
        unit="step",
        unit_scale=True,
        desc=type(engine).__name__.lower(),
        disable=not progress,
        postfix="compiling",
    )
    with bar, deferred_interrupt() as interrupted:
        run = _Run(batch, key, trials, bar, interrupted)
        run.require_memory(type(engine).__name__)
        rows = run.all()
    fields = {
        name: jnp.asarray(np.concatenate([row[name] for row in rows])) for name in rows[0]
    }
    return as_result(config, fields)


def _require_runnable(config: Any, engine: Any, key: Any) -> None:
    require_instance("config", config, Config)
    require_instance("engine", engine, AbstractEngine)
    if not is_known(*jax.tree.leaves((config, key))):
        raise ValueError(
            "simulate got a traced config or key: its loop runs on the host, so it cannot "
            "be inside jit, vmap or grad. Use simulate_trial there, or call simulate once "
            "for each config."
        )
    require_key(key)
    require_norm(start_moments(config.rule, config.model.phases()[0], config.start)[1])


_COMPILED: set = set()
"""The programs that this process has compiled. It only saves time: a program that was
evicted from JAX's cache is compiled by several threads at once."""


class _Run:
    """One call of `simulate`: its trials in batches, on threads if the device is a CPU."""

    def __init__(self, batch: Batch, key: Any, trials: int, bar: tqdm, interrupted: Any):
        self.batch, self.key, self.trials, self.bar = batch, key, trials, bar
        self.interrupted: threading.Event = interrupted
        self.failed = threading.Event()
        self.first_trials = range(0, trials, batch.lanes)
        # A thread does not inherit JAX's contexts.
        self.device: Any = jax.config.jax_default_device  # pyright: ignore
        # On a CPU the small steps of one batch keep one core busy.
        is_threaded = defaults.on_cpu() and len(self.first_trials) > 1
        self.workers = (
            min(len(self.first_trials), os.cpu_count() or 1) if is_threaded else 1
        )

    def require_memory(self, engine: str) -> None:
        """Refuses trials that do not fit into the memory, before any of them begins."""
        batch = self.batch
        with jax.default_device(self.device):
            call = batch.call_bytes()
        available = memory.room_for_calls(self.workers)
        what = f"p = {int(batch.config.model.p)} with {engine}"
        if call > available:
            raise ValueError(
                f"{what} needs {memory.gibibytes(call)} for {batch.lanes} trials at a "
                f"time, and there are {memory.gibibytes(available)}: lower p, observe at "
                "fewer times, or use Chain() without snapshots, or Diffusion()."
            )
        # The observations of all batches, and their concatenation.
        numbers = self.trials * batch.times * batch.observed_numbers()
        needs = 2 * numbers * batch.result_dtype.itemsize
        available = memory.host_room()
        if needs > available:
            raise ValueError(
                f"trials = {self.trials} at {what} need {memory.gibibytes(needs)} for the "
                f"observations at {batch.times} times, and there are "
                f"{memory.gibibytes(available)}: pass fewer trials or times, or leave "
                "snapshots out."
            )

    def all(self) -> list[Observations]:
        """Returns the observations of all batches, in the order of the trials."""
        if self.workers == 1:
            return [self.run_batch(first) for first in self.first_trials]
        # If the program is not compiled yet, one batch runs first: otherwise every thread
        # would compile it.
        parts = (self.batch.config.rule, self.batch.config.model, self.batch.config.start)
        shape = (self.batch.tiles, self.batch.calls[0].stops.shape[1], self.batch.x64)
        program = (jax.tree.structure((self.batch.engine, parts)), shape)
        warm_up_batches = 0 if program in _COMPILED else 1
        rows = [self.run_batch(first) for first in self.first_trials[:warm_up_batches]]
        _COMPILED.add(program)
        with ThreadPoolExecutor(self.workers) as pool:
            try:
                others = self.first_trials[warm_up_batches:]
                futures = [pool.submit(self.run_batch, first) for first in others]
                return rows + [future.result() for future in futures]
            except BaseException:
                self.failed.set()
                pool.shutdown(cancel_futures=True)
                raise

    def run_batch(self, first: int) -> Observations:
        """Returns the observations of the batch of trials that begins with trial
        `first`."""
        count = min(self.batch.lanes, self.trials - first)
        numbers = first + np.arange(count, dtype=np.int32)

        def before_call() -> None:
            if self.interrupted.is_set() or self.failed.is_set():
                raise KeyboardInterrupt

        def after_call(steps: int) -> None:
            self.bar.postfix = ""
            self.bar.update(steps * count)

        call = (self.batch.config, self.key, [numbers], self.device)
        return self.batch.run(*call, before_call, after_call)
