"""Errors that are known at construction: the argument, its value and the remedy."""

import math
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.core import Tracer


def is_known(*values: Any) -> bool:
    """Whether none of `values` is traced, so that Python may look at them."""
    return not any(isinstance(v, Tracer) for v in values)


def require(name: str, value: Any, holds: Callable[[np.ndarray], Any], remedy: str) -> None:
    """Raises a `ValueError` unless `holds(value)`.

    Inside a `jit`, `vmap` or `grad` the value is not known and nothing is checked:
    there a bad number shows as a trajectory that is not `finite`.
    """
    if is_known(value) and not np.all(holds(np.asarray(value))):
        shown = np.asarray(value).tolist()
        raise ValueError(f"{name} = {shown} is not allowed: {remedy}.")


def host_times(ts: Any) -> Any:
    """Times on the host, in the precision that they came in; traced ones as they are.

    `floor(p t)` is decided there, and float32 could not tell the steps of a long,
    high-dimensional run apart.
    """
    if not is_known(*(ts if isinstance(ts, (list, tuple)) else [ts])):
        return jnp.asarray(ts)
    ts = np.asarray(ts)
    return ts if np.issubdtype(ts.dtype, np.floating) else ts.astype(float)


def positive(x: np.ndarray) -> Any:
    return np.isfinite(x) & (x > 0)


def require_dtype(dtype: Any) -> None:
    try:
        allowed = dtype is None or np.dtype(dtype) in (np.float32, np.float64)
    except TypeError:
        allowed = False
    if not allowed:
        raise ValueError(f"dtype = {dtype!r} is not allowed: pass float32 or float64.")


def require_instance(name: str, value: Any, kind: type) -> None:
    if not isinstance(value, kind):
        raise ValueError(
            f"{name} = {value!r} is not allowed: pass an instance of {kind.__name__}."
        )


def require_whole(
    name: str, value: Any, least: int, remedy: str, most: int | None = None
) -> int:
    """`value` as an `int`, if it is a whole number of at least `least`, at most `most`."""
    try:
        whole = int(value)
        exact = whole == value and not isinstance(value, bool)
    except (TypeError, ValueError, OverflowError):
        whole, exact = 0, False
    if not exact or whole < least or (most is not None and whole > most):
        raise ValueError(f"{name} = {_shown(value)} is not allowed: {remedy}.")
    return whole


def _shown(value: Any) -> str:
    # Python refuses to print whole numbers of more than some thousand digits.
    is_long = isinstance(value, int) and value > 10**30
    return f"10^{math.log10(value):.0f} or so" if is_long else repr(value)
