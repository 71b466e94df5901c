"""Kills one of two workers of a sweep again and again, and checks that no result is lost.

python -m benchmarks.kills [kills]

Two processes share a store. In each round one of them kills itself by SIGKILL at one of the
points of `_sweep/points.py`: at every point in turn, when it reaches it for the first, the
second, ... time. The other one goes on to the end. Before a round some units are erased,
and one of them gets the lease of a dead process on another host, whose clock is two hours
ahead or behind, in turn. After each kill, and at the end of each round, all cells that are
marked as done are compared with those of an undisturbed sweep. Prints one JSON line. The
default is 100 kills.
"""

import itertools
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

import jax.random as jr
import numpy as np

import inopca_jax as ino
from inopca_jax._sweep import leases, points
from inopca_jax._sweep.points import Point
from inopca_jax._sweep.store import LEASES, Store

SIDE = 12


def run_sweep(store: Path | None = None):
    """Returns the dataset of the sweep, which continues from the store if there is one."""
    values = {
        "rule.tau": np.linspace(0.2, 1, SIDE),
        "model.omega": np.linspace(0.5, 3, SIDE),
    }
    config = ino.Config(model=ino.SpikedModel(100), ts=np.array([0.0, 1.0, 2.0]))
    return ino.sweep(config, values, trials=100, key=jr.key(1), store=store)


# A worker forks a child for each line that it reads, so that it imports only once.
WORKER = textwrap.dedent("""
    import os, sys
    from pathlib import Path
    from benchmarks.kills import die_at, run_sweep
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            die_at(*line.split())
            run_sweep(Path(sys.argv[1]))
            os._exit(0)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
    """)

NEVER = "NEVER"


def die_at(point: str, times: str) -> None:
    """Makes this process kill itself when it reaches a point for the given time, and take
    over leases of other processes after a second.

    **Arguments:**

    - `point`: the name of a `Point`, or `NEVER`.
    - `times`: how many times it is reached, as text.
    """
    leases.STALE = 1.0
    counts = itertools.count(1)

    def watch(reached: Point) -> None:
        if reached.name == point and next(counts) == int(times):
            os.kill(os.getpid(), signal.SIGKILL)

    points.watch = watch


class Worker:
    """A process that runs sweeps into a store, each in a child process."""

    def __init__(self, path: Path):
        # Without a cache, compilation would be most of a child's time.
        cache = dict(JAX_COMPILATION_CACHE_DIR=str(path.parent / "cache"))
        cache |= dict(JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS="0")
        # On some CPUs XLA prints a long warning for every cached program.
        cache |= dict(TF_CPP_MIN_LOG_LEVEL="3")
        self.process = subprocess.Popen(
            [sys.executable, "-c", WORKER, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | cache,
        )

    def begin(self, point: str, times: int) -> None:
        """Starts a sweep that kills itself at the point."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{point} {times}\n")
        self.process.stdin.flush()

    def exit_code(self) -> int:
        """Waits for the end of the sweep and returns its exit code."""
        assert self.process.stdout is not None
        return int(self.process.stdout.readline())


# Without the points at which a store is created, which happens only once.
POINTS = [p for p in Point if not p.name.startswith("STORE")]
_MOST_TIMES = 4
"""A worker is killed at the latest when it reaches a point for the fourth time: it may not
reach it more often, as the other worker does part of the work."""

_CLOCK_ERROR = 2 * 3600.0


def main(kills: int = 100) -> None:
    reference, random_units = run_sweep(), random.Random(0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "s.zarr"
        run_sweep(path)
        checker, workers = Checker(reference), [Worker(path) for _ in range(2)]
        with workers[0].process, workers[1].process:
            killed = survived = rounds = 0
            while killed < kills:
                point = POINTS[rounds % len(POINTS)]
                rounds += 1
                store = Store(path)
                erased = random_units.sample(range(store.units), 24)
                erase(store, erased)
                leave_lease(path, erased[0], _CLOCK_ERROR if rounds % 2 else -_CLOCK_ERROR)
                workers[0].begin(point.name, 1 + rounds // len(POINTS) % _MOST_TIMES)
                workers[1].begin(NEVER, 1)
                code = workers[0].exit_code()
                assert code in (0, -signal.SIGKILL), code
                checker.check(path)
                killed += code != 0
                # It may not reach the point, if the other worker is faster.
                survived += code == 0
                assert workers[1].exit_code() == 0
                assert Store(path).done().all(), "a unit is lost"
                checker.check(path)
        assert run_sweep(path).identical(reference)
    line = dict(
        kills=killed,
        rounds_without_a_kill=survived,
        leases_of_dead_hosts=rounds,
        cells_compared=checker.compared,
        cells_lost=0,
        cells_wrong=0,
        same_bits_at_the_end=True,
    )
    print(json.dumps(line))


class Checker:
    """Compares the cells that are marked as done in a store with a reference."""

    def __init__(self, reference):
        self._mean, self._std = reference.q_mean.values, reference.lam_std.values
        self.compared = 0

    def check(self, path: Path) -> None:
        dataset = ino.open_sweep(path)
        done = dataset.done.values
        assert np.array_equal(dataset.q_mean.values[done], self._mean[done])
        assert np.array_equal(dataset.lam_std.values[done], self._std[done])
        self.compared += int(done.sum())


def erase(store: Store, units: list[int]) -> None:
    """Removes the results and the flags of units."""
    for unit in units:
        for name in ("flags", "results"):
            store.chunk_path(name, unit).unlink(missing_ok=True)


def leave_lease(path: Path, unit: int, clock_error: float) -> None:
    """Writes the lease of a dead process on another host, whose clock is wrong."""
    lease = path / LEASES / str(unit)
    lease.write_text(json.dumps(dict(host="another host", pid=1)))
    modified = time.time() + clock_error
    os.utime(lease, (modified, modified))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
