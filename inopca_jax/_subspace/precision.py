"""Arrays in float64, whatever JAX's mode."""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree


def precision_of(dtype: Any) -> AbstractContextManager[Any]:
    """JAX's x64 mode for data in float64; the one in use for others."""
    return jax.enable_x64(True) if dtype == np.float64 else nullcontext()


@dataclass(frozen=True)
class _Copy:
    """A JAX array that waits in NumPy's memory."""

    array: np.ndarray


def to_pickle(tree: PyTree) -> PyTree:
    """`tree` with its JAX arrays in a form that `from_pickle` restores to the bit.

    JAX's own arrays are pickled whole too, but loaded in the mode that is then in use: in
    float32 they lose digits.
    """
    held = lambda leaf: _Copy(np.asarray(leaf)) if isinstance(leaf, jax.Array) else leaf
    return jax.tree.map(held, tree)


def from_pickle(tree: PyTree) -> PyTree:
    """What `to_pickle` was given."""
    with jax.enable_x64(True):
        return jax.tree.map(
            lambda leaf: jnp.asarray(leaf.array) if isinstance(leaf, _Copy) else leaf, tree
        )
