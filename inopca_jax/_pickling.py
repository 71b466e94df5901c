"""Results and configs that are copied and pickled to the bit, whatever JAX's mode."""

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import PyTree


class Pickled(eqx.Module):
    """A Module whose arrays in float64 are pickled, copied and loaded in float64.

    JAX's own arrays are pickled whole too, but loaded in the mode that is then in use: in
    float32 they lose digits.
    """

    def __getstate__(self) -> dict[str, Any]:
        return to_pickle(vars(self))

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(from_pickle(state))


@dataclass(frozen=True)
class _Copy:
    """A JAX array that waits in NumPy's memory."""

    array: np.ndarray


def to_pickle(tree: PyTree) -> PyTree:
    """`tree` with its JAX arrays in a form that `from_pickle` restores to the bit."""
    return jax.tree.map(lambda x: _Copy(np.asarray(x)) if _is_numbers(x) else x, tree)


def from_pickle(tree: PyTree) -> PyTree:
    """What `to_pickle` was given."""
    with jax.enable_x64(True):
        return jax.tree.map(
            lambda leaf: jnp.asarray(leaf.array) if isinstance(leaf, _Copy) else leaf, tree
        )


def _is_numbers(leaf: Any) -> bool:
    """Whether it is an array that NumPy can hold: no key, and nothing traced, which a copy
    inside of a transformation meets."""
    is_array = isinstance(leaf, jax.Array) and not isinstance(leaf, Tracer)
    return is_array and not jnp.issubdtype(leaf.dtype, jax.dtypes.extended)
