"""Measures what a sweep costs beyond its trials: its speed and that of its store.

python -m benchmarks.sweep [--quick] [--cells N]

The speed is compared with one `vmap` of `simulate_trial` over all trials of all cells, in
one compiled call whose results are not stored. Such a call uses one core, so both sides get
one. With `--cells N` only the store is measured, by a sweep of N cells with short trials.
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
from inopca_jax._cli.main import main as inopca
from inopca_jax._sweep.store import Store

from .report import report, seconds

KEY = jr.key(0)


def grid(side: int) -> dict:
    return {
        "rule.tau": np.linspace(0.1, 1.0, side),
        "model.omega": np.linspace(0.2, 3.0, side),
    }


def make_config(p: int, ts) -> ino.Config:
    return ino.Config(model=ino.SpikedModel(p), ts=np.asarray(ts))


def one_vmap(config: ino.Config, values: dict, trials: int):
    """Returns a function of a key that runs all trials of all cells in one call, and
    returns their last overlaps. It runs in float64, as the chain of a sweep does."""
    taus, omegas = (
        x.ravel().repeat(trials) for x in np.meshgrid(*values.values(), indexing="ij")
    )

    @jax.jit
    def run(key, taus, omegas):
        def one_trial(tau, omega, number):
            leaves = lambda c: (c.rule.tau.value, c.model.omega)
            own = eqx.tree_at(leaves, config, (tau, omega))
            return ino.simulate_trial(own, key=jr.fold_in(key, number)).q[-1]

        return jax.vmap(one_trial)(taus, omegas, jnp.arange(len(taus), dtype=jnp.int32))

    def run_in_float64(key):
        with jax.enable_x64(True):
            return run(key, jnp.asarray(taus), jnp.asarray(omegas))

    return run_in_float64


def overhead(side: int, p: int, t: float, trials: int) -> None:
    config, values = make_config(p, [0.0, t / 2, t]), grid(side)
    vmapped = one_vmap(config, values, trials)
    ours, compiling = seconds(
        lambda i: ino.sweep(config, values, trials=trials, key=jr.key(i)), 3
    )
    baseline, _ = seconds(lambda i: vmapped(jr.key(i)), 3)
    dataset = ino.sweep(config, values, trials=trials, key=KEY)
    # Means of |q| are compared: a few trials have q < 0 at the end, and where by chance
    # none has, the standard deviation of q is too small for this comparison.
    means = np.abs(vmapped(KEY)).reshape(side, side, trials).mean(axis=2)
    error = dataset.abs_q_std.values[..., -1] * (2 / trials) ** 0.5
    z = (dataset.abs_q_mean.values[..., -1] - means) / error
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


def resident_memory() -> float:
    """Returns the resident memory of this process in MiB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def stored(side: int, fsync: bool) -> None:
    """Reports how many cells per second are stored, if their trials are short.

    Also the memory of the process after a tenth of the units and at the end, the number and
    size of the files, and how long `status` and `verify` take.
    """
    memory: list[float] = []
    write = Store.write

    def write_and_measure(self, unit, results):
        write(self, unit, results)
        memory.append(resident_memory())

    config = make_config(100, [0.0, 0.1, 0.2])
    run = lambda path, n: ino.sweep(
        config, grid(n), trials=20, key=KEY, store=path, fsync=fsync
    )
    with tempfile.TemporaryDirectory() as folder:
        run(Path(folder) / "first.zarr", 8)
        path = Path(folder) / "s.zarr"
        Store.write = write_and_measure
        try:
            duration = timed(lambda: run(path, side))
        finally:
            Store.write = write
        files = [p for p in path.rglob("*") if p.is_file()]
        commands = {
            f"{name}_seconds": round(timed(lambda n=name: command(n, path)), 2)
            for name in ("status", "verify")
        }
        report(
            f"{side**2:,} cells to the store, fsync {'on' if fsync else 'off'}, "
            "vs 300 a second",
            ours=duration,
            baseline=side**2 / 300,
            cells_per_second=round(side**2 / duration),
            mebibytes_early_and_last=[round(memory[len(memory) // 10]), round(memory[-1])],
            files=len(files),
            mebibytes_of_files=round(sum(p.stat().st_size for p in files) / 2**20, 1),
            **commands,
            unit="s",
            p=100,
            trials=20,
            dtype="float64",
        )


def timed(run) -> float:
    """Returns how many seconds a function takes."""
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin


def command(name: str, path: Path) -> None:
    with contextlib.redirect_stdout(io.StringIO()):
        assert inopca(["sweep", name, str(path)]) == 0


def main(quick: bool = False) -> None:
    stored(16 if quick else 317, fsync=True)
    # In a new process, because JAX starts a thread per core when it is initialised.
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
