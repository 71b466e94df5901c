"""Estimates the speed of the engines on a data-centre GPU, without measuring it.

python -m benchmarks.gpu

XLA's cost analysis counts the operations of the lowered programs; the figures of the GPU
are from its data sheet.
"""

import sys

import jax
import jax.numpy as jnp
import jax.random as jr

import inopca_jax as ino
from inopca_jax._engine.chain import chain_step, draw_noise
from inopca_jax._engine.deflation import Targets
from inopca_jax._engine.draws import sample_of
from inopca_jax._engine.sample import StreamState, draw_pairs, one_block
from inopca_jax._noise import words_of

GPU = "NVIDIA A100 SXM 80 GB"
FLOPS, BANDWIDTH = 19.5e12, 2.039e12  # float32 operations and bytes per second
# Seconds to launch a kernel, however small: 8 microseconds were measured publicly for an
# iteration of a scan of three kernels (jax-ml/jax#2491). How many a step of the chain
# launches was counted in the program compiled for this GPU (benchmarks.compiled).
LAUNCH, LAUNCHES_PER_STEP = 8e-6 / 3, 0.184
BLOCK, TILE = 64, 4096


def operations(function, *arguments) -> float:
    """Returns the number of operations before fusion, a transcendental function as ten."""
    analysis = jax.jit(function).lower(*arguments).cost_analysis()
    assert isinstance(analysis, dict)
    return float(analysis["flops"]) + 10 * float(analysis.get("transcendentals", 0))


def stream_cost(p: int) -> tuple[float, float]:
    """Returns the operations and the bytes of device memory per sample, in blocks."""
    config = ino.Config(model=ino.SpikedModel(p))
    model = config.model.phases()[0]

    def block(key, x, xi):
        halves = draw_pairs(key, jnp.arange(BLOCK // 2, dtype=jnp.int32), p)
        sample = jax.vmap(lambda noise: sample_of(model, (xi,), noise))
        ys = jnp.concatenate([sample(half) for half in halves])
        rows = jnp.arange(BLOCK)
        state = StreamState.begin((x,), (xi,), ((),))
        targets = Targets.of(model, components=1)
        wanted = jnp.ones(BLOCK, bool)
        after = one_block(config.rule, model, targets, state, ys, rows, rows, wanted)
        return after.xs[0]

    count = operations(block, jr.key(0), jnp.ones(p), jnp.ones(p)) / BLOCK
    # The block is written once and read by two matrix products. Once per block, x and xi
    # are read and x is written.
    moved = 4 * (3 * p + 5 * p / BLOCK)
    return count, moved


def chain_operations(p: int) -> float:
    """Returns the operations per step and trial."""
    config = ino.Config(model=ino.SpikedModel(p))
    model = config.model.phases()[0]
    engine = ino.Chain().prepare(config)
    state = engine.init(config.rule, model, config.start, jr.key(0))

    def step(key, state):
        noise = draw_noise(words_of(key), jnp.arange(1, dtype=jnp.int32), p, count=2)
        first = jax.tree.map(lambda part: part[0], noise)
        targets = Targets.of(model, components=1)
        after = chain_step(config.rule, model, targets, state, jnp.int32(0), first)
        return after.along[0][0]

    return operations(step, jr.key(0), state)


def main(quick: bool = False) -> None:
    p = 10_000
    count, moved = stream_cost(p)
    arithmetic, memory = count / FLOPS, moved / BANDWIDTH
    print(f"### Estimated speed on an {GPU}\n")
    print(
        "These numbers are estimates: no GPU was measured. Operations are counted by XLA "
        "in the lowered program, a transcendental function as ten. The GPU is assumed to "
        f"reach the {FLOPS / 1e12:g} TFLOP/s and {BANDWIDTH / 1e12:g} TB/s of its data "
        "sheet.\n"
    )
    print(
        f"- Stream, p = {p:,}, in blocks of {BLOCK}: {count:,.0f} operations and "
        f"{moved:,.0f} bytes per sample, which take {arithmetic * 1e9:.0f} ns and "
        f"{memory * 1e9:.0f} ns. The estimate is {max(arithmetic, memory) * 1e9:.0f} ns "
        "per sample and trial, if enough trials run side by side to fill the device."
    )
    count = chain_operations(p)
    launching = LAUNCHES_PER_STEP * LAUNCH
    estimate = max(count / FLOPS, launching / TILE)
    print(
        f"- Chain, {TILE:,} trials side by side: {count:,.0f} operations per step and "
        f"trial, which take {count / FLOPS * 1e12:.1f} ps. A step launches "
        f"{LAUNCHES_PER_STEP} kernels (counted in the compiled program), which take about "
        f"{launching * 1e6:.2g} microseconds however small they are, "
        f"{launching / TILE * 1e12:.0f} ps per trial. The estimate is "
        f"{estimate * 1e12:.0f} ps per step and trial, limited by the launches; a wider "
        "tile would be cheaper."
    )


if __name__ == "__main__":
    main(quick="--quick" in sys.argv[1:])
