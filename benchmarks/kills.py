"""A sweep that is killed again and again: is what it leaves behind ever wrong?

python -m benchmarks.kills [times]

Kills a real sweep by SIGKILL at random moments, 200 times unless told otherwise, opens the
store after each, and compares every cell that is marked with the sweep that nobody killed.
Cells are erased after each, so that there is always something to do. Prints a JSON line;
takes a quarter to half an hour.
"""

import contextlib
import json
import os
import random
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

import jax.random as jr
import numpy as np

import inopca_jax as ino
from inopca_jax._sweep.store import Store

SIDE = 12


def study(store: Path | None = None):
    values = {
        "rule.tau": np.linspace(0.2, 1, SIDE),
        "model.omega": np.linspace(0.5, 3, SIDE),
    }
    config = ino.Config(model=ino.SpikedModel(100), ts=np.array([0.0, 1.0, 2.0]))
    return ino.sweep(config, values, trials=100, key=jr.key(1), store=store)


# The child that is killed was forked after its imports: most moments are then moments of
# the sweep's own work, and not of Python's beginning.
WORKER = textwrap.dedent("""
    import os, sys
    from pathlib import Path
    from benchmarks.kills import study
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            study(Path(sys.argv[1]))
            os._exit(0)
        print(child, flush=True)
        os.waitpid(child, 0)
        print("ended", flush=True)
    """)


class Sweeps:
    """Starts a sweep of the store in a child, and kills it."""

    def __init__(self, path: Path):
        self.path, self.claims = path, path / ".claims"
        # What it takes to compile would be most of a child's time.
        cache = dict(JAX_COMPILATION_CACHE_DIR=str(path.parent / "cache"))
        cache |= dict(JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS="0")
        self.worker = subprocess.Popen(
            [sys.executable, "-c", WORKER, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | cache,
        )

    def start(self) -> int:
        assert self.worker.stdin is not None
        assert self.worker.stdout is not None
        self.worker.stdin.write("go\n")
        self.worker.stdin.flush()
        return int(self.worker.stdout.readline())

    def end(self) -> None:
        assert self.worker.stdout is not None
        assert self.worker.stdout.readline() == "ended\n"

    def rehearsed(self) -> tuple[float, float]:
        """How long a sweep takes here from its start, and from its first claim."""
        begin = time.perf_counter()
        self.await_work(self.start())
        first = time.perf_counter()
        self.end()
        return time.perf_counter() - begin, time.perf_counter() - first

    def await_work(self, child: int) -> None:
        """Until it has claimed something, or has ended before anybody looked."""
        with contextlib.suppress(ProcessLookupError):
            while not (self.claims.exists() and any(self.claims.iterdir())):
                os.kill(child, 0)
                time.sleep(0.001)

    def kill(self, pause: float, at_work: bool) -> None:
        for left in self.claims.iterdir():
            left.unlink()  # of the one before, which would be mistaken for this one's
        child = self.start()
        if at_work:
            self.await_work(child)
        time.sleep(pause)
        subprocess.run(["kill", "-9", str(child)], stderr=subprocess.DEVNULL)
        self.end()


def main(times: int = 200) -> None:
    truth, chance = study(), random.Random(0)
    mean, lam = truth.q_mean.values, truth.lam_std.values
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "s.zarr"
        sweeps, caught, checked = Sweeps(path), 0, 0
        sweeps.rehearsed()  # this one compiles
        erase(Store(path), range(SIDE**2))
        whole, working = sweeps.rehearsed()
        for _ in range(times):
            erase(Store(path), chance.sample(range(SIDE**2), 70))
            before = Store(path).done()
            at_work = chance.random() < 0.8
            sweeps.kill(chance.uniform(0.0, working if at_work else whole), at_work)
            found, done = ino.open_sweep(path), Store(path).done()
            assert np.all(done >= before), "a cell that was marked is lost"
            where = done.reshape(SIDE, SIDE)
            assert np.array_equal(found.q_mean.values[where], mean[where])
            assert np.array_equal(found.lam_std.values[where], lam[where])
            checked += int(done.sum())
            caught += bool(0 < np.sum(done & ~before) < np.sum(~before))
        assert sweeps.worker.stdin is not None
        sweeps.worker.stdin.close()
        sweeps.worker.wait()
        assert caught > times / 10, "too few were killed while they wrote"
        assert study(path).identical(truth)
    line = dict(
        kills=times,
        stores_that_opened=times,
        in_the_middle_of_writing=caught,
        marked_cells_compared=checked,
        lost=0,
        wrong=0,
        same_bits_at_the_end=True,
    )
    print(json.dumps(line))


def erase(store: Store, cells) -> None:
    """Makes cells as they were before they were computed."""
    for cell in cells:
        store.forget(cell)
        store._chunk("results", cell).unlink(missing_ok=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
