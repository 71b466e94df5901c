"""Type aliases, and the conversion from a number to an array leaf."""

from collections.abc import Callable
from typing import Any, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int32, Key, PyTree, UInt32

from ._check import require_instance

Real: TypeAlias = Float[Array, ""]
"""A number that a sweep or a gradient may touch: always an array leaf."""

Dimension: TypeAlias = Float[Array | np.ndarray, ""]
"""The dimension `p` as an array leaf, which stays on the host until it is traced."""

Scalar: TypeAlias = Dimension | np.floating | float | int
"""Any real number, also an array without axes."""

Vector: TypeAlias = Float[Array, " p"]
Matrix: TypeAlias = Float[Array, "components components"]
Words: TypeAlias = UInt32[Array, "2"]
"""The two words that key one counter-based stream of random numbers."""

Count: TypeAlias = Int32[Array | np.integer, ""]
"""A counter: an array inside of compiled code, a number of NumPy's on the host."""

TrialKey: TypeAlias = Key[Array, ""] | UInt32[Array, "2"]
Times: TypeAlias = Float[Array | np.ndarray, " times"]
ScheduleState: TypeAlias = PyTree[Float[Array, "..."]]
"""A schedule's state: a number, a tuple or a Module; `()` if it has none."""

RuleState: TypeAlias = PyTree[Float[Array, "..."]]
"""The state of a rule that acts on all components at once; `()` if it has none."""


def real(x: Any) -> Array:
    """The array leaf for `x`.

    `eqx.filter_jit` would take a Python float for a constant and compile again for
    the next one; a strongly typed array of the default precision is always traced.
    """
    return jnp.asarray(x, dtype=jnp.result_type(float))


def part(name: str, kind: type) -> Callable[[Any], Any]:
    """The converter of a field that holds a Module, which may be one that a user wrote."""

    def convert(value: Any) -> Any:
        require_instance(name, value, kind)
        return real_leaves(value)

    return convert


def real_leaves(tree: Any) -> Any:
    """A Module with its Python floats made array leaves, as those that users write have."""
    if not isinstance(tree, eqx.Module):
        return tree
    return jax.tree.map(lambda x: real(x) if isinstance(x, float) else x, tree)
