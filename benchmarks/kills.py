"""A sweep that is killed again and again: is what it leaves behind ever wrong?

python -m benchmarks.kills [times]

Kills a real sweep by SIGKILL at random moments, 200 times unless told otherwise, opens the
store after each, and compares every cell that is marked with the sweep that nobody killed.
A cell is forgotten now and then, so that there is always something to do. Prints a JSON
line; takes about a quarter of an hour.
"""

import json
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


def main(times: int = 200) -> None:
    truth, pauses = study(), random.Random(0)
    mean, lam = truth.q_mean.values, truth.lam_std.values
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "s.zarr"
        caught = opened = checked = 0
        with subprocess.Popen(
            [sys.executable, "-c", WORKER, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as worker:
            assert worker.stdin is not None
            assert worker.stdout is not None
            before = np.zeros(SIDE**2, bool)
            for _ in range(times):
                worker.stdin.write("go\n")
                worker.stdin.flush()
                child = int(worker.stdout.readline())
                time.sleep(pauses.uniform(0.5, 6.0))
                subprocess.run(["kill", "-9", str(child)], stderr=subprocess.DEVNULL)
                assert worker.stdout.readline() == "ended\n"
                if not path.exists():
                    continue
                found, done = ino.open_sweep(path), Store(path).done()
                opened += 1
                assert np.all(done >= before), "a cell that was marked is lost"
                where = done.reshape(SIDE, SIDE)
                assert np.array_equal(found.q_mean.values[where], mean[where])
                assert np.array_equal(found.lam_std.values[where], lam[where])
                checked += int(done.sum())
                caught += bool(0 < np.sum(done & ~before) < np.sum(~before))
                for cell in pauses.sample(range(SIDE**2), 70):
                    Store(path).forget(cell)
                before = Store(path).done()
            worker.stdin.close()
        assert study(path).identical(truth)
    line = dict(
        kills=times,
        stores_that_opened=opened,
        in_the_middle_of_writing=caught,
        marked_cells_compared=checked,
        lost=0,
        wrong=0,
        same_bits_at_the_end=True,
    )
    print(json.dumps(line))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
