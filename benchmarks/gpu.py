"""An estimate, on paper, of the engines' speed on one data-centre GPU. Not measured.

python -m benchmarks.gpu

Operations are counted by XLA's cost analysis of the programs as lowered; the GPU's
figures are its maker's.
"""

import sys

import jax
import jax.numpy as jnp
import jax.random as jr

import inopca_jax as ino
from inopca_jax._engine.chain import _draw, _update
from inopca_jax._engine.steps import StreamState, draw_pairs, one_block, sample_of
from inopca_jax._noise import words_of

GPU = "NVIDIA A100 SXM 80 GB"
FLOPS, BANDWIDTH = 19.5e12, 2.039e12  # float32 a second, bytes a second
LAUNCH = 8e-6  # seconds a step of a scan, however small (jax-ml/jax#2491)
BLOCK, TILE = 64, 4096


def operations(function, *arguments) -> float:
    """Arithmetic operations and transcendental functions, before fusion."""
    analysis = jax.jit(function).lower(*arguments).cost_analysis()
    assert isinstance(analysis, dict)
    return float(analysis["flops"]) + 10 * float(analysis.get("transcendentals", 0))


def stream(p: int) -> tuple[float, float]:
    """Operations and bytes of device memory a sample, in blocks."""
    study, model = ino.Config(), ino.SpikedModel(p)

    def block(key, x, xi):
        halves = draw_pairs(key, jnp.arange(BLOCK // 2, dtype=jnp.int32), p)
        sample = jax.vmap(lambda *noise: sample_of(model, xi, noise))
        ys = jnp.concatenate([sample(*half) for half in halves])
        rows = jnp.arange(BLOCK)
        state = StreamState.begin(x, xi, ())
        wanted = jnp.ones(BLOCK, bool)
        return one_block(study.rule, model, state, ys, rows, rows, wanted).x

    ops = operations(block, jr.key(0), jnp.ones(p), jnp.ones(p)) / BLOCK
    # The block is written once and read by the two products; x and xi are read and x
    # written once a block.
    moved = 4 * (3 * p + 5 * p / BLOCK)
    return ops, moved


def chain(p: int) -> float:
    """Operations a step and trial."""
    study, model = ino.Config(), ino.SpikedModel(p)
    engine = ino.Chain()
    state = engine.begin(study.rule, model, study.start, jr.key(0))

    def step(key, state):
        noise = _draw(words_of(key), jnp.arange(1, dtype=jnp.int32), p, False)
        first = {name: part[0] for name, part in noise.items()}
        return _update(study.rule, model, state, jnp.int32(0), first).u

    return operations(step, jr.key(0), state)


def main(quick: bool = False) -> None:
    p = 10_000
    ops, moved = stream(p)
    by_ops, by_bytes = ops / FLOPS, moved / BANDWIDTH
    print(f"### An estimate for {GPU}\n")
    print(
        "Nobody has measured this. Operations are XLA's count of the lowered program "
        f"(a transcendental function as ten), the GPU's {FLOPS / 1e12:g} TFLOP/s and "
        f"{BANDWIDTH / 1e12:g} TB/s are its maker's figures, at full use.\n"
    )
    print(
        f"- Stream, p = {p:,}, blocks of {BLOCK}: {ops:,.0f} operations and {moved:,.0f} "
        f"bytes a sample, so {by_ops * 1e9:.0f} ns by arithmetic and {by_bytes * 1e9:.0f} "
        f"ns by memory: an estimate of {max(by_ops, by_bytes) * 1e9:.0f} ns a sample and "
        "trial, if enough trials run side by side to fill the device."
    )
    ops = chain(p)
    wide = max(ops / FLOPS, LAUNCH / TILE)
    print(
        f"- Chain, {TILE:,} trials side by side: {ops:,.0f} operations a step and trial, "
        f"{ops / FLOPS * 1e12:.1f} ps by arithmetic; a step of the loop takes about "
        f"{LAUNCH * 1e6:g} microseconds however small, that is {LAUNCH / TILE * 1e9:.2f} "
        f"ns a trial: an estimate of {wide * 1e9:.2f} ns a step and trial, bound by the "
        "loop; a wider tile is cheaper."
    )


if __name__ == "__main__":
    main(quick="--quick" in sys.argv[1:])
