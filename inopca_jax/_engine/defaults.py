"""The sizes that the engines work in. One place, by backend, from measurements.

A tile is how many trials advance together. It is part of the result's bits (reductions
and vectorised functions round by their width), so it depends on the backend alone and
never on how many trials are asked for. A chunk is how many steps' noise is drawn at once.
"""

import math

import jax


def on_cpu() -> bool:
    device = jax.config.jax_default_device  # pyright: ignore
    platform = getattr(device, "platform", device) or jax.default_backend()
    return platform == "cpu"


def tiles_per_call(tiles: int) -> int:
    # One after another in one program, where there are so many that calling it would
    # take longer than running it; enough calls are left to keep the cores busy.
    return 8 if on_cpu() and tiles >= 32 else 1


def chain_tile() -> int:
    # CPU: 32 fill the vector units; wider gains little and pads a run of 20 trials.
    # Accelerator, not yet measured: a step costs a launch, however wide.
    return 32 if on_cpu() else 4096


def vector_tile() -> int:
    # A chain that follows whole vectors keeps several of them for every trial.
    return 32


def chain_chunk() -> int:
    return 256


def stream_tile() -> int:
    return 2 if on_cpu() else 32


def stream_chunk(p: int) -> int:
    # Two steps share a hash, so even; about half a megabyte, to stay in the cache.
    return max(4, min(64, 2**17 // p // 2 * 2))


def stream_block(p: int) -> int:
    # CPU: the noise is what takes the time and blocks are no faster (benchmarks.engines),
    # so the literal loop. Accelerator: one pair of products for 64 samples, fewer if
    # memory is short; that is by reasoning, not yet by measurement.
    return 1 if on_cpu() else min(64, max(4, 2**26 // p // 4 * 4))


def unroll(length: int, most: int) -> int:
    """How many iterations of a loop of known length are compiled as straight code: on an
    accelerator at most `most`."""
    # There an iteration is at least two launches, and straight code is fused into few
    # kernels: a step of the chain takes a fifth of a launch instead of two
    # (benchmarks.compiled). Longer code takes long to compile, and spills registers.
    return 1 if on_cpu() else min(length, most)


def steps_per_call(cost: int, least: int = 1024) -> int:
    """Returns the steps of one call: about a quarter of a second of work on a CPU core, so
    that a progress bar moves and Ctrl-C takes effect.

    It is a power of two, and so a whole number of blocks.

    **Arguments:**

    - `cost`: the time of a step in nanoseconds.
    - `least`: the fewest steps.
    """
    return max(least, 2 ** round(math.log2(250_000_000 / cost)))
