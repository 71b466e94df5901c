"""Type aliases, and the one conversion from a user's number to an array leaf."""

from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key, PyTree, UInt32

Real: TypeAlias = Float[Array, ""]
"""A number that a sweep or a gradient may touch: always an array leaf."""

Vector: TypeAlias = Float[Array, " p"]
Words: TypeAlias = UInt32[Array, "2"]
"""The two words that key one counter-based stream of random numbers."""

TrialKey: TypeAlias = Key[Array, ""] | UInt32[Array, "2"]
Times: TypeAlias = Float[Array | np.ndarray, " times"]
Memory: TypeAlias = PyTree[Float[Array, "..."]]
"""A schedule's state. A bare number, a tuple, a Module; `()` if there is none."""


def real(x: Any) -> Array:
    """The array leaf for `x`.

    `eqx.filter_jit` would take a Python float for a constant and compile again for
    the next one; a strongly typed array of the default precision is always traced.
    """
    return jnp.asarray(x, dtype=jnp.result_type(float))


def scalar(x: Any) -> Array:
    """The array leaf for one number."""
    leaf = real(x)
    if leaf.ndim:
        raise ValueError(
            f"{x!r} is not allowed for a parameter: pass one number, and batch configs "
            "with vmap."
        )
    return leaf


def real_leaves(tree: PyTree) -> PyTree:
    """`tree` with its Python floats made array leaves, for Modules that users write."""
    return jax.tree.map(lambda x: real(x) if isinstance(x, float) else x, tree)
