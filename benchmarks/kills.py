"""A sweep that is killed again and again: is what it leaves behind ever wrong?

python -m benchmarks.kills [times]

Has a real sweep kill itself by SIGKILL at one of the moments that matter, each in turn and
at the first, the second, ... time it comes there, 200 times unless told otherwise. Opens
the store after each, and compares every cell that is marked with the sweep that nobody
killed. Cells are erased after each, so that there is always something to do. Prints a JSON
line.
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
from pathlib import Path

import jax.random as jr
import numpy as np

import inopca_jax as ino
from inopca_jax._sweep import points
from inopca_jax._sweep.points import Point
from inopca_jax._sweep.store import Store

SIDE = 12


def study(store: Path | None = None):
    values = {
        "rule.tau": np.linspace(0.2, 1, SIDE),
        "model.omega": np.linspace(0.5, 3, SIDE),
    }
    config = ino.Config(model=ino.SpikedModel(100), ts=np.array([0.0, 1.0, 2.0]))
    return ino.sweep(config, values, trials=100, key=jr.key(1), store=store)


# The child that is killed was forked after its imports, which are most of its time.
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


def die_at(point: str, times: str) -> None:
    """Has this process kill itself when it comes to a point for the n-th time."""
    counts = itertools.count(1)

    def watch(reached: Point) -> None:
        if reached == Point[point] and next(counts) == int(times):
            os.kill(os.getpid(), signal.SIGKILL)

    points.watch = watch


class Sweeps:
    """Runs sweeps of the store in children."""

    def __init__(self, path: Path):
        # What it takes to compile would be most of a child's time.
        cache = dict(JAX_COMPILATION_CACHE_DIR=str(path.parent / "cache"))
        cache |= dict(JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS="0")
        # On some CPUs XLA complains at length about every file that it reads back.
        cache |= dict(TF_CPP_MIN_LOG_LEVEL="3")
        self.worker = subprocess.Popen(
            [sys.executable, "-c", WORKER, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | cache,
        )

    def exit_code(self, point: Point, times: int) -> int:
        """Of one that is to die there."""
        assert self.worker.stdin is not None
        assert self.worker.stdout is not None
        self.worker.stdin.write(f"{point.name} {times}\n")
        self.worker.stdin.flush()
        return int(self.worker.stdout.readline())


# A store is made once, and a claim is buried where another process died.
MOMENTS = [p for p in Point if not p.name.startswith(("STORE", "CLAIM_BURIED"))]


def main(times: int = 200) -> None:
    truth, chance = study(), random.Random(0)
    mean, lam = truth.q_mean.values, truth.lam_std.values
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "s.zarr"
        study(path)
        sweeps, partly, checked = Sweeps(path), 0, 0
        with sweeps.worker:
            for i in range(times):
                erase(Store(path), chance.sample(range(SIDE**2), 40))
                before = Store(path).done()
                nth = 1 + i // len(MOMENTS) % _MOST_TIMES
                code = sweeps.exit_code(MOMENTS[i % len(MOMENTS)], nth)
                assert code == -signal.SIGKILL, code
                found, done = ino.open_sweep(path), Store(path).done()
                assert np.all(done >= before), "a cell that was marked is lost"
                where = done.reshape(SIDE, SIDE)
                assert np.array_equal(found.q_mean.values[where], mean[where])
                assert np.array_equal(found.lam_std.values[where], lam[where])
                checked += int(done.sum())
                partly += bool(0 < np.sum(done & ~before) < np.sum(~before))
        assert study(path).identical(truth)
    line = dict(
        kills=times,
        stores_that_opened=times,
        with_a_part_of_the_work_done=partly,
        marked_cells_compared=checked,
        lost=0,
        wrong=0,
        same_bits_at_the_end=True,
    )
    print(json.dumps(line))


_MOST_TIMES = 16
"""At least 40 cells are missing, in units of two: there are at least 20 of everything."""


def erase(store: Store, cells) -> None:
    """Makes cells as they were before they were computed."""
    for cell in cells:
        store.forget(cell)
        store._chunk("results", cell).unlink(missing_ok=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
