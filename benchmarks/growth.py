"""How cost grows: with p, with trials, with devices; and memory with steps and p.

python -m benchmarks.growth [--quick]

Prints a JSON line a point and draws `benchmarks/growth.png`. Peak memory and the number
of devices belong to a process, so those points are measured in processes of their own.
"""

import os
import subprocess
import sys
from pathlib import Path

import jax
import jax.random as jr
import matplotlib.pyplot as plt
import numpy as np

import inopca_jax as ino
from inopca_jax import plot
from inopca_jax._batch import driver as run
from inopca_jax._engine import defaults

from .report import report, seconds

FIGURE = Path(__file__).parent / "growth.png"


def a_study(p: int, steps: int) -> ino.Config:
    return ino.Config(model=ino.SpikedModel(p), ts=np.array([steps / p]))


def cost(engine, p: int, steps: int, trials: int, repeats: int) -> float:
    """Nanoseconds a step and trial."""
    study = a_study(p, steps)
    q = ino.simulate(study, key=jr.key(0), trials=trials, engine=engine).q
    assert np.all(np.abs(q) <= 1)
    best, _ = seconds(
        lambda i: ino.simulate(study, key=jr.key(i), trials=trials, engine=engine).q,
        repeats,
    )
    return best / (steps * trials) * 1e9


def in_process(*arguments: str, devices: int = 1) -> float:
    flags = f"--xla_force_host_platform_device_count={devices}"
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.growth", *arguments],
        env=os.environ | {"XLA_FLAGS": flags},
        cwd=Path(__file__).parents[1],
        check=True,
        capture_output=True,
        text=True,
    )
    return float(done.stdout.splitlines()[-1])


def peak_memory(p: int, trials: int, steps: int) -> float:
    """MiB that this process has needed at most, having run the stream (Linux)."""
    ino.simulate(a_study(p, steps), key=jr.key(0), trials=trials, engine=ino.Stream())
    # Not getrusage, whose maximum a process inherits from the one that started it.
    status = Path("/proc/self/status").read_text()
    return float(status.split("VmHWM:")[1].split()[0]) / 1024


def cost_on_devices(steps: int) -> float:
    """Nanoseconds a step and trial of one wide tile, its trials spread over a mesh."""
    axis = jax.sharding.AxisType.Auto
    mesh = jax.make_mesh((jax.device_count(),), ("trials",), axis_types=(axis,))
    spread = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(None, "trials"))
    study, engine, tile = a_study(10_000, steps), ino.Chain(), 1024
    rule, (model,) = study.rule, study.model.phases()
    numbers = np.arange(tile, dtype=np.int32)[None]
    keys, states = run._begin(engine, rule, model, study.start, jr.key(0), numbers)
    keys, states = jax.device_put((keys, states), spread)
    stops, looks = np.array([steps], np.int32), np.array([True])
    best, _ = seconds(
        lambda i: run._advance(
            engine, rule, model, keys, states, np.int32(0), stops, looks
        ),
        3,
    )
    return best / (steps * tile) * 1e9


def measure(quick: bool) -> dict[str, tuple[list, list, str]]:
    """Curves by name: the points, the values, the panel."""
    repeats, most = (1, 0.01) if quick else (3, 1.0)
    curves = {}
    ps = [10**k for k in range(3, 8)][: 2 if quick else None]
    steps = int(40_000 * most)
    chain = [cost(ino.Chain(), p, steps, 64, repeats) for p in ps]
    curves["chain"] = (ps, chain, "p")
    ps = [10**k for k in range(3, 7)][: 2 if quick else None]
    budget = int(2e8 * most)
    values = [cost(ino.Stream(), p, max(64, budget // (8 * p)), 8, repeats) for p in ps]
    curves["stream"] = (ps, values, "p")
    tile = defaults.chain_tile()
    counts = [tile // 2, tile, 2 * tile, 8 * tile, 32 * tile, 128 * tile][
        : 2 if quick else None
    ]
    values = [cost(ino.Chain(), 10_000, max(400, steps // 4), n, repeats) for n in counts]
    curves["chain"] = (counts, values, "trials")
    counts = [1, 2] if quick else [1, 2, 4]
    values = [in_process("devices", str(steps // 4), devices=n) for n in counts]
    curves["chain, 1,024 trials on a mesh"] = (counts, values, "host devices")
    counts = [64, 256] if quick else [64, 256, 1024]
    values = [in_process("memory", "100000", "4", str(n)) for n in counts]
    curves["stream, p = 100,000"] = (counts, values, "steps")
    ps = [1000, 10_000] if quick else [1000, 10_000, 100_000, 1_000_000]
    values = [in_process("memory", str(p), "4", "64") for p in ps]
    curves["stream, 64 steps"] = (ps, values, "p, memory")
    return curves


def draw(curves, path: Path) -> None:
    panels = ["p", "trials", "host devices", "steps", "p, memory"]
    with plot.style():
        figure, axes = plt.subplots(1, 5, figsize=(13, 2.8))
        for ax, panel in zip(axes, panels, strict=True):
            mine = [(name, *xy) for name, (*xy, where) in curves.items() if where == panel]
            for i, (name, x, y) in enumerate(mine):
                ax.plot(x, y, marker=plot.MARKERS[i], color=plot.COLOURS[i], label=name)
            memory = panel in ("steps", "p, memory")
            ax.set_ylabel("peak memory, MiB" if memory else "ns a step and trial")
            ax.set_xlabel(panel.split(",")[0])
            ax.set_xscale("log")
            if len(mine) > 1:
                ax.set_yscale("log")
                ax.legend()
            else:
                ax.set_ylim(0, 1.3 * max(mine[0][2]))
                ax.set_title(mine[0][0])
            if panel == "host devices":
                ax.set_xticks(mine[0][1], [str(n) for n in mine[0][1]])
                ax.minorticks_off()
        plot.save(figure, path)


def main(quick: bool = False) -> None:
    curves = measure(quick)
    for name, (xs, ys, panel) in curves.items():
        for x, y in zip(xs, ys, strict=True):
            unit = "MiB" if panel in ("steps", "p, memory") else "ns a step and trial"
            facts = dict(at=x, against=panel, unit=unit, dtype=None, p=None, trials=None)
            report(f"growth: {name}", ours=y, baseline=ys[0], **facts)
    if not quick:
        draw(curves, FIGURE)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["memory", p, trials, steps]:
            print(peak_memory(int(p), int(trials), int(steps)))
        case ["devices", steps]:
            print(cost_on_devices(int(steps)))
        case rest:
            main(quick="--quick" in rest)
