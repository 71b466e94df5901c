"""Small pieces of floating-point arithmetic that several modules share."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ._types import Real


def cast(tree: Any, dtype: Any) -> Any:
    """Returns `tree` with its floating-point arrays, NumPy's too, as JAX arrays."""

    def convert(leaf: Any) -> Any:
        is_array = isinstance(leaf, (jax.Array, np.ndarray, np.generic))
        is_float = is_array and jnp.issubdtype(leaf.dtype, jnp.floating)
        return jnp.asarray(leaf, dtype) if is_float else leaf

    return jax.tree.map(convert, tree)


def off_host(tree: Any) -> Any:
    """Returns `tree` with floating-point arrays of NumPy's as JAX arrays.

    Configs, whose p and times are on the host, are converted before they are passed to
    compiled functions. JAX 0.10 passes an array of NumPy's that a function compiled in
    float32 mode has captured in single precision to programs of x64 mode, too, which fail.
    """

    def convert(leaf: Any) -> Any:
        is_float = isinstance(leaf, np.ndarray) and leaf.dtype.kind == "f"
        return jnp.asarray(leaf, jnp.result_type(float)) if is_float else leaf

    return jax.tree.map(convert, tree)


def root(x: Array) -> Array:
    """Returns the square root of a number that is negative at most by rounding.

    Its derivative at zero is 0, not infinite.
    """
    return jnp.where(x <= 0, 0, jnp.sqrt(jnp.where(x <= 0, 1, x)))


def derivatives(
    f: Callable[[Array], Float[Array, " m"]], x: Float[Array, " n"]
) -> tuple[Float[Array, " m"], Float[Array, "m n"], Float[Array, "m n n"]]:
    """Returns the value of `f` at `x`, with its first and second derivatives."""

    def first(x: Array) -> tuple[Array, tuple[Array, Array]]:
        slope, value = jax.jacfwd(lambda x: (f(x),) * 2, has_aux=True)(x)
        return slope, (value, slope)

    second, (value, slope) = jax.jacfwd(first, has_aux=True)(x)
    return value, slope, second


def fast_two_sum(
    a: Float[Array, "*n"], b: Float[Array, "*n"]
) -> tuple[Float[Array, "*n"], Float[Array, "*n"]]:
    """Returns the rounded sum of `a` and `b`, and its rounding error (Dekker).

    A long sum of small terms stays accurate if each error is added to the next term. The
    error is exact where `b` is the smaller one, and else right to a unit in the last place
    of `b`.
    """
    total = a + b
    return total, b - (total - a)


_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)


def gauss_legendre(low: Real, high: Real, panels: int = 64) -> tuple[Array, Array]:
    """Returns nodes and weights of a composite Gauss-Legendre rule on `[low, high]`.

    The interval is divided into `panels` of equal length with 8 nodes each.
    """
    left_edges = np.arange(panels)[:, None]
    unit = ((left_edges + (_NODES + 1) / 2) / panels).ravel()
    x = low + (high - low) * jnp.asarray(unit, low.dtype)
    weights = jnp.asarray(np.tile(_WEIGHTS, panels) / (2 * panels), low.dtype)
    return x, (high - low) * weights
