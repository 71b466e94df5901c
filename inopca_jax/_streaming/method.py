"""What `stream_pca` runs: a rule, component by component, or the `Sketch`."""

from typing import Any

import equinox as eqx
from jaxtyping import Array, Float, Int

from .._engine import defaults
from .._rule import AbstractAlgorithm
from .block import BLOCK, Estimates, compiled_update, initial_estimates, update
from .sketch import Sketch, SketchState, initial_sketch, merged_samples, update_sketch

Method = AbstractAlgorithm | Sketch
State = Estimates | SketchState


def initial_state(method: Any, components: int, p: int, dtype: Any) -> Any:
    """Returns the state of `components` components before the first sample."""
    if isinstance(method, Sketch):
        return initial_sketch(method, components, p, dtype)
    return initial_estimates(method, components, p, dtype)


def block_size(method: Any, p: int) -> int:
    """Returns how many samples a method uses at a time."""
    return merged_samples(p) if isinstance(method, Sketch) else BLOCK


def next_state(
    method: Any,
    state: Any,
    samples: Float[Array, "samples p"],
    valid: Int[Array, ""],
    center: bool,
) -> Any:
    """Returns the state after the first `valid` of some more samples."""
    if isinstance(method, Sketch):
        return update_sketch(method, state, samples, valid, center)
    return update(method, state, samples, valid, center)


_compiled_sketch_update = eqx.filter_jit(update_sketch)


def compiled_next_state(method: Any) -> Any:
    """Returns `next_state` of a method, compiled."""
    if isinstance(method, Sketch):
        return _compiled_sketch_update
    return compiled_update(defaults.on_cpu())
