"""A sweep by two workers, one of them killed again and again: is anything wrong or lost?

python -m benchmarks.kills [times]

Two processes share a store. One of them kills itself by SIGKILL when it comes to one of the
moments that matter, each of them in turn, for the first, the second, ... time; the other
goes on to the end. Before each round some units are erased, and one of them is given a
lease of a dead process of another host, whose clock is two hours ahead or behind, in turn.
After each kill, and at the end of each round, every cell that is marked as done is compared
with the sweep that nobody killed. Prints a JSON line; 100 kills unless told otherwise.
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


def study(store: Path | None = None):
    values = {
        "rule.tau": np.linspace(0.2, 1, SIDE),
        "model.omega": np.linspace(0.5, 3, SIDE),
    }
    config = ino.Config(model=ino.SpikedModel(100), ts=np.array([0.0, 1.0, 2.0]))
    return ino.sweep(config, values, trials=100, key=jr.key(1), store=store)


# A worker forks a child for each line that it reads: the imports are most of its time.
WORKER = textwrap.dedent("""
    import os, sys
    from pathlib import Path
    from benchmarks.kills import die_at, study
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            die_at(*line.split())
            study(Path(sys.argv[1]))
            os._exit(0)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
    """)

NEVER = "NEVER"


def die_at(point: str, times: str) -> None:
    """Has this process kill itself when it comes to a point for the n-th time, and take
    over the leases of others after a second."""
    leases.STALE = 1.0
    counts = itertools.count(1)

    def watch(reached: Point) -> None:
        if reached.name == point and next(counts) == int(times):
            os.kill(os.getpid(), signal.SIGKILL)

    points.watch = watch


class Worker:
    """A process that runs sweeps of the store in children."""

    def __init__(self, path: Path):
        # What it takes to compile would be most of a child's time.
        cache = dict(JAX_COMPILATION_CACHE_DIR=str(path.parent / "cache"))
        cache |= dict(JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS="0")
        # On some CPUs XLA complains at length about every file that it reads back.
        cache |= dict(TF_CPP_MIN_LOG_LEVEL="3")
        self.process = subprocess.Popen(
            [sys.executable, "-c", WORKER, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | cache,
        )

    def begin(self, point: str, times: int) -> None:
        """Starts a sweep that dies there."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{point} {times}\n")
        self.process.stdin.flush()

    def exit_code(self) -> int:
        """Of the sweep, when it has ended."""
        assert self.process.stdout is not None
        return int(self.process.stdout.readline())


# A store is made once.
MOMENTS = [p for p in Point if not p.name.startswith("STORE")]
_MOST_TIMES = 4
"""To how many times a moment is to come: the other worker does some of the work."""

_HOURS = 2 * 3600.0


def main(kills: int = 100) -> None:
    truth, chance, ended = study(), random.Random(0), 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "s.zarr"
        study(path)
        checker, workers = Checker(truth), [Worker(path) for _ in range(2)]
        with workers[0].process, workers[1].process:
            died = rounds = 0
            while died < kills:
                moment = MOMENTS[rounds % len(MOMENTS)]
                rounds += 1
                store = Store(path)
                erased = chance.sample(range(store.units), 24)
                erase(store, erased)
                leave_lease(path, erased[0], _HOURS if rounds % 2 else -_HOURS)
                workers[0].begin(moment.name, 1 + rounds // len(MOMENTS) % _MOST_TIMES)
                workers[1].begin(NEVER, 1)
                code = workers[0].exit_code()
                assert code in (0, -signal.SIGKILL), code
                checker.check(path)
                died += code != 0
                ended += code == 0  # the other worker was quicker
                assert workers[1].exit_code() == 0
                assert Store(path).done().all(), "a unit is lost"
                checker.check(path)
        assert study(path).identical(truth)
    line = dict(
        kills=died,
        rounds_in_which_the_other_worker_was_quicker=ended,
        leases_of_a_dead_host_two_hours_ahead_or_behind=rounds,
        marked_cells_compared=checker.compared,
        lost=0,
        wrong=0,
        same_bits_at_the_end=True,
    )
    print(json.dumps(line))


class Checker:
    """Compares what is marked in a store with the truth."""

    def __init__(self, truth):
        self._mean, self._std = truth.q_mean.values, truth.lam_std.values
        self.compared = 0

    def check(self, path: Path) -> None:
        found = ino.open_sweep(path)
        done = found.done.values
        assert np.array_equal(found.q_mean.values[done], self._mean[done])
        assert np.array_equal(found.lam_std.values[done], self._std[done])
        self.compared += int(done.sum())


def erase(store: Store, units: list[int]) -> None:
    """Makes units as they were before they were computed."""
    for unit in units:
        for name in ("flags", "results"):
            store.chunk(name, unit).unlink(missing_ok=True)


def leave_lease(path: Path, unit: int, ahead: float) -> None:
    """Leaves the lease of a process that is gone, of a host whose clock is off."""
    lease = path / LEASES / str(unit)
    lease.write_text(json.dumps(dict(host="another host", pid=1)))
    then = time.time() + ahead
    os.utime(lease, (then, then))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
