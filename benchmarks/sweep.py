"""What a sweep costs beside its trials: against one bare vmap, and against its own size.

python -m benchmarks.sweep [--quick] [--cells N]

With `--cells` only a sweep of that many cells, of next to no trials, is run and looked at.
The vmap has all trials of all cells side by side in one compiled call, and keeps nothing.
It runs on one core whatever there are, so both sides get one.
"""

import contextlib
import io
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

import inopca_jax as ino
from inopca_jax._batch.calls import plan
from inopca_jax._batch.driver import advance_trial
from inopca_jax._cli.main import main as inopca
from inopca_jax._config import cast
from inopca_jax._sweep.store import Store

from .report import report, seconds

KEY = jr.key(0)


def grid(side: int) -> dict:
    return {
        "rule.tau": np.linspace(0.1, 1.0, side),
        "model.omega": np.linspace(0.2, 3.0, side),
    }


def study(p: int, ts) -> ino.Config:
    return ino.Config(model=ino.SpikedModel(p), ts=np.asarray(ts))


def bare(config: ino.Config, values: dict, trials: int):
    """All trials of all cells in one call; only the result of the last time is made. In
    float64, as the chain of a sweep is."""
    engine = ino.Chain().suited(config)
    steps = plan(config, engine.clock(config.model.p), 2**30)[0]
    taus, omegas = (
        x.ravel().repeat(trials) for x in np.meshgrid(*values.values(), indexing="ij")
    )
    with jax.enable_x64(True):
        config = cast(config, jnp.float64)

    @jax.jit
    def run(key, taus, omegas):
        turns = (jnp.asarray(steps.stops[0]), jnp.asarray(steps.seen[0] >= 0))

        def one(tau, omega, number):
            at = lambda c: (c.rule.tau.value, c.model.omega)
            mine = eqx.tree_at(at, config, (tau, omega))
            own = jr.fold_in(key, number)
            state = engine.begin(mine.rule, mine.model, mine.start, own)
            begin = jnp.zeros((), jnp.int32)
            _, seen = advance_trial(engine, mine.rule, mine.model, begin, turns, own, state)
            return seen["q"][-1]

        return jax.vmap(one)(taus, omegas, jnp.arange(len(taus), dtype=jnp.int32))

    def in_float64(key):
        with jax.enable_x64(True):
            return run(key, jnp.asarray(taus), jnp.asarray(omegas))

    return in_float64


def overhead(side: int, p: int, t: float, trials: int) -> None:
    config, values = study(p, [0.0, t / 2, t]), grid(side)
    one_call = bare(config, values, trials)
    ours, compiling = seconds(
        lambda i: ino.sweep(config, values, trials=trials, key=jr.key(i)), 3
    )
    baseline, _ = seconds(lambda i: one_call(jr.key(i)), 3)
    found = ino.sweep(config, values, trials=trials, key=KEY)
    # Of |q|: now and then a trial settles on the other side, which a deviation of trials
    # that all stay on theirs knows nothing of.
    means = np.abs(one_call(KEY)).reshape(side, side, trials).mean(axis=2)
    error = found.abs_q_std.values[..., -1] * (2 / trials) ** 0.5
    z = (found.abs_q_mean.values[..., -1] - means) / error
    assert np.sqrt(np.mean(z**2)) < 1.3, z
    report(
        f"sweep of {side} x {side} cells vs one bare vmap, one core",
        ours=ours,
        baseline=baseline,
        unit="s",
        p=p,
        trials=trials,
        dtype="float64",
        compile_seconds=round(compiling, 2),
    )


def resident() -> float:
    """Megabytes that the process holds just now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def stored(side: int, fsync: bool) -> None:
    """Cells whose trials cost next to nothing: how many a second reach the store, what the
    process holds at a tenth of the way and at the end, how many files there are, and how
    long it takes to look at all of them."""
    held: list[float] = []
    write = Store.write

    def watched(self, unit, results):
        write(self, unit, results)
        held.append(resident())

    config = study(100, [0.0, 0.1, 0.2])
    run = lambda path, n: ino.sweep(
        config, grid(n), trials=20, key=KEY, store=path, fsync=fsync
    )
    with tempfile.TemporaryDirectory() as folder:
        run(Path(folder) / "first.zarr", 8)
        path = Path(folder) / "s.zarr"
        Store.write = watched
        try:
            taken = lasts(lambda: run(path, side))
        finally:
            Store.write = write
        files = [p for p in path.rglob("*") if p.is_file()]
        looked = {
            f"{name}_seconds": round(lasts(lambda n=name: command(n, path)), 2)
            for name in ("status", "verify")
        }
        report(
            f"{side**2:,} cells to the store, fsync {'on' if fsync else 'off'}, "
            "vs 300 a second",
            ours=taken,
            baseline=side**2 / 300,
            cells_a_second=round(side**2 / taken),
            megabytes_early_and_last=[round(held[len(held) // 10]), round(held[-1])],
            files=len(files),
            megabytes_of_files=round(sum(p.stat().st_size for p in files) / 2**20, 1),
            **looked,
            unit="s",
            p=100,
            trials=20,
            dtype="float64",
        )


def lasts(job) -> float:
    """For how many seconds it runs."""
    begin = time.perf_counter()
    job()
    return time.perf_counter() - begin


def command(name: str, path: Path) -> None:
    with contextlib.redirect_stdout(io.StringIO()):
        assert inopca(["sweep", name, str(path)]) == 0


def main(quick: bool = False) -> None:
    stored(16 if quick else 317, fsync=True)
    # In a process that never had more than a core: JAX's threads are there from its start.
    core = min(os.sched_getaffinity(0))
    command = ["taskset", "-c", str(core), sys.executable, "-m", "benchmarks.sweep"]
    command += ["--overhead", *["--quick"] * quick]
    print(
        subprocess.run(command, check=True, capture_output=True, text=True).stdout, end=""
    )


if __name__ == "__main__":
    quick = "--quick" in sys.argv[1:]
    if "--cells" in sys.argv[1:]:
        cells = int(sys.argv[sys.argv.index("--cells") + 1])
        stored(math.ceil(cells**0.5), fsync=True)
    elif "--overhead" not in sys.argv[1:]:
        main(quick)
    elif quick:
        overhead(4, 200, 2.0, 20)
    else:
        overhead(16, 2_000, 10.0, 20)
