"""Measures how time grows with p, trials and devices, and memory with steps and p.

python -m benchmarks.growth [--quick]

Prints one JSON line per point and draws `benchmarks/growth.png`. Peak memory and the number
of devices are properties of a process, so each of those points has a process of its own.
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import jax
import jax.random as jr
import matplotlib.pyplot as plt
import numpy as np

import inopca_jax as ino
from inopca_jax import plot
from inopca_jax._batch.batch import _advance, _init
from inopca_jax._engine import defaults
from inopca_jax._timeline import without_spike

from .report import report, seconds

FIGURE = Path(__file__).parent / "growth.png"


def make_config(p: int, steps: int) -> ino.Config:
    return ino.Config(model=ino.SpikedModel(p), ts=np.array([steps / p]))


def cost(engine, p: int, steps: int, trials: int, repeats: int) -> float:
    """Returns nanoseconds per step and trial."""
    config = make_config(p, steps)

    def overlaps(i):
        return ino.simulate(config, key=jr.key(i), trials=trials, engine=engine).q

    assert np.all(np.abs(overlaps(0)) <= 1)
    best, _ = seconds(overlaps, repeats)
    return best / (steps * trials) * 1e9


def in_process(*arguments: str, devices: int = 1) -> float:
    """Returns what this script prints, called with these arguments in a new process."""
    flags = f"--xla_force_host_platform_device_count={devices}"
    process = subprocess.run(
        [sys.executable, "-m", "benchmarks.growth", *arguments],
        env=os.environ | {"XLA_FLAGS": flags},
        cwd=Path(__file__).parents[1],
        check=True,
        capture_output=True,
        text=True,
    )
    return float(process.stdout.splitlines()[-1])


def peak_memory(p: int, trials: int, steps: int) -> float:
    """Runs the stream and returns the peak memory of this process in MiB (on Linux)."""
    ino.simulate(make_config(p, steps), key=jr.key(0), trials=trials, engine=ino.Stream())
    # Not getrusage: its maximum includes that of the process that started this one.
    status = Path("/proc/self/status").read_text()
    return float(status.split("VmHWM:")[1].split()[0]) / 1024


def cost_on_devices(steps: int) -> float:
    """Returns nanoseconds per step and trial of one wide tile, in float32, with its trials
    spread over a mesh of devices."""
    axis = jax.sharding.AxisType.Auto
    mesh = jax.make_mesh((jax.device_count(),), ("trials",), axis_types=(axis,))
    spread = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(None, "trials"))
    config, tile = make_config(10_000, steps), 1024
    engine = ino.Chain().prepare(config)
    rule, (model,) = config.rule, config.model.phases()
    trials = [np.arange(tile, dtype=np.int32)[None]]
    begun = _init(engine, True, (rule, model, config.start), jr.key(0), trials)
    keys, state = jax.device_put(begun, spread)
    parts = (rule, without_spike(model))
    stops, is_observation = np.array([steps], np.int32), np.array([True])
    best, _ = seconds(
        lambda i: _advance(
            engine, True, parts, keys, state, np.int32(0), stops, is_observation
        ),
        3,
    )
    return best / (steps * tile) * 1e9


class Curve(NamedTuple):
    """One measured curve, in the panel of its variable."""

    name: str
    variable: str
    points: list[int]
    values: list[float]
    unit: str


TIME, MEMORY = "ns per step and trial", "MiB"
PANELS = ["p", "trials", "host devices", "steps", "p, memory"]


def measure(quick: bool) -> list[Curve]:
    repeats, scale = (1, 0.01) if quick else (3, 1.0)
    length = 2 if quick else None
    steps, budget = int(40_000 * scale), int(2e8 * scale)

    ps = [10**k for k in range(3, 8)][:length]
    costs = [cost(ino.Chain(), p, steps, 64, repeats) for p in ps]
    curves = [Curve("chain", "p", ps, costs, TIME)]

    ps = [10**k for k in range(3, 7)][:length]
    costs = [cost(ino.Stream(), p, max(64, budget // (8 * p)), 8, repeats) for p in ps]
    curves.append(Curve("stream", "p", ps, costs, TIME))

    tile = defaults.chain_tile()
    counts = [tile // 2, tile, 2 * tile, 8 * tile, 32 * tile, 128 * tile][:length]
    costs = [cost(ino.Chain(), 10_000, max(400, steps // 4), n, repeats) for n in counts]
    curves.append(Curve("chain", "trials", counts, costs, TIME))

    counts = [1, 2, 4][:length]
    costs = [in_process("devices", str(steps // 4), devices=n) for n in counts]
    name = "chain, 1,024 trials on a mesh"
    curves.append(Curve(name, "host devices", counts, costs, TIME))

    counts = [64, 256, 1024][:length]
    peaks = [in_process("memory", "100000", "4", str(n)) for n in counts]
    curves.append(Curve("stream, p = 100,000", "steps", counts, peaks, MEMORY))

    ps = [1000, 10_000, 100_000, 1_000_000][:length]
    peaks = [in_process("memory", str(p), "4", "64") for p in ps]
    curves.append(Curve("stream, 64 steps", "p, memory", ps, peaks, MEMORY))
    return curves


def draw(curves: list[Curve], path: Path) -> None:
    with plot.style():
        figure, axes = plt.subplots(1, len(PANELS), figsize=(13, 2.8))
        for ax, panel in zip(axes, PANELS, strict=True):
            own = [curve for curve in curves if curve.variable == panel]
            for i, curve in enumerate(own):
                style = dict(marker=plot.MARKERS[i], color=plot.COLOURS[i])
                ax.plot(curve.points, curve.values, label=curve.name, **style)
            unit = own[0].unit
            ax.set_ylabel("peak memory, MiB" if unit == MEMORY else unit)
            ax.set_xlabel(panel.split(",")[0])
            ax.set_xscale("log")
            if len(own) > 1:
                ax.set_yscale("log")
                ax.legend()
            else:
                ax.set_ylim(0, 1.3 * max(own[0].values))
                ax.set_title(own[0].name)
            if panel == "host devices":
                ax.set_xticks(own[0].points, [str(n) for n in own[0].points])
                ax.minorticks_off()
        plot.save(figure, path)


def main(quick: bool = False) -> None:
    curves = measure(quick)
    for name, variable, points, values, unit in curves:
        for point, value in zip(points, values, strict=True):
            facts = dict(at=point, against=variable, unit=unit)
            facts |= dict(dtype=None, p=None, trials=None)
            report(f"growth: {name}", ours=value, baseline=values[0], **facts)
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
