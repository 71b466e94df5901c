"""The sizes that the engines work in. One place, by backend, from measurements.

A tile is how many trials advance together. It is part of the result's bits (reductions
and vectorised functions round by their width), so it depends on the backend alone and
never on how many trials are asked for. A chunk, how many steps' noise is drawn at once,
and a batch, how many steps go into one call of the compiled program, are not.
"""

import jax


def on_cpu() -> bool:
    return jax.default_backend() == "cpu"


def chain_tile() -> int:
    # CPU: 32 fill the vector units; wider gains little and pads a run of 20 trials.
    # Accelerator: a step costs a launch, however wide.
    return 32 if on_cpu() else 4096


def chain_chunk() -> int:
    return 256


def stream_tile() -> int:
    return 2 if on_cpu() else 32


def stream_chunk(p: int) -> int:
    # Two steps share a hash, so even; about half a megabyte, to stay in the cache.
    return max(4, min(64, 2**17 // p // 2 * 2))


def steps_per_call(chunk: int, cost: int) -> int:
    """Steps in one call: about a quarter of a second of work on a CPU core, so that
    a progress bar moves and Ctrl-C is heard. `cost` is in nanoseconds a step."""
    return max(chunk, 250_000_000 // cost)
