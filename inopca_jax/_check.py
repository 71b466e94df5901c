"""Checks of arguments: an error names the argument, its value and the remedy.

Inside a `jit`, `vmap` or `grad` values are traced and cannot be checked: there a bad number
shows as a trajectory that is not `finite`.
"""

import math
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

if TYPE_CHECKING:
    T = TypeVar("T")
    Checked = Annotated[T, "checked by the function itself"]
else:

    class Checked:
        """`Checked[T]` is the type `T` for readers and static type checkers. At run time it
        is `Any`, so that a run-time type checker leaves the error to the function itself,
        whose message names the remedy."""

        def __class_getitem__(cls, kind: Any) -> Any:
            return Annotated[Any, kind]


def is_known(*values: Any) -> bool:
    """Whether none of `values` is traced, so that Python can read them."""
    return not any(isinstance(value, Tracer) for value in values)


def refuse(name: str, value: Any, remedy: str) -> NoReturn:
    """Raises a `ValueError` with the name and value of an argument, and a remedy."""
    raise ValueError(f"{name} = {_shown(value)} is not allowed: {remedy}.")


def require(
    name: str, value: Any, condition: Callable[[np.ndarray], Any], remedy: str
) -> None:
    """Raises a `ValueError` unless `value` is an array of real numbers for which
    `condition` is true, or traced."""
    array = _known_reals(name, value, f"pass real numbers; {remedy}")
    if array is not None and not np.all(condition(array)):
        refuse(name, array.tolist(), remedy)


def reals(name: str, value: Any, remedy: str = "pass an array of real numbers") -> Any:
    """Returns `value` as a JAX array, if it is an array of real numbers or traced."""
    array, dtype = _known_reals(name, value, remedy), jnp.result_type(float)
    if array is not None:
        largest = float(np.max(np.abs(array), initial=0, where=np.isfinite(array)))
        if largest > float(np.finfo(dtype).max):
            refuse(name, value, f"it is beyond {dtype}; pass a smaller number")
    return jnp.asarray(value, dtype=dtype)


def number(name: str, value: Any, remedy: str = "pass one real number") -> Any:
    """Returns `value` as a JAX array without axes, if it is one real number or traced."""
    array = reals(name, value, remedy)
    if array.ndim:
        refuse(name, value, remedy)
    return array


def reals_on_host(name: str, value: Any, remedy: str) -> np.ndarray:
    """Returns `value` as a NumPy array in float64, if it is an array of real numbers."""
    array = _known_reals(name, value, remedy)
    if array is None:
        refuse(name, value, f"it is traced; {remedy}")
    return array.astype(float)


def plain_number(
    name: str, value: Any, condition: Callable[[np.ndarray], Any], remedy: str
) -> float:
    """Returns `value` as a Python float, if it is one real number for which `condition` is
    true."""
    array = _known_reals(name, value, f"pass one real number; {remedy}")
    if array is None or array.ndim or not condition(array):
        refuse(name, value, remedy)
    return float(array)


def as_number(name: str) -> Callable[[Any], Any]:
    """Returns the converter of a field that is one number."""
    remedy = "pass one number, and batch configs with vmap"
    return lambda value: number(name, value, remedy)


def as_reals(name: str) -> Callable[[Any], Any]:
    """Returns the converter of a field that is an array of numbers."""
    return lambda value: reals(name, value)


def as_flag(name: str) -> Callable[[Any], bool]:
    """Returns the converter of a field that is true or false."""
    return lambda value: require_flag(name, value)


def as_instance(name: str, kind: type) -> Callable[[Any], Any]:
    """Returns the converter of a field that is an instance of a class."""

    def convert(value: Any) -> Any:
        require_instance(name, value, kind)
        return value

    return convert


def as_times(name: str) -> Callable[[Any], Any]:
    """Returns the converter of a field that is an array of times.

    Times stay on the host in the precision that they have, unless they are traced.
    `floor(p t)` is computed there: float32 does not resolve the steps of a long run in high
    dimensions.
    """

    def convert(ts: Any) -> Any:
        array = _known_reals(name, ts, "pass an array of real numbers")
        if array is None:
            return jnp.asarray(ts)
        return array if np.issubdtype(array.dtype, np.floating) else array.astype(float)

    return convert


def _known_reals(name: str, value: Any, remedy: str) -> np.ndarray | None:
    """Returns an array of real numbers as a NumPy array, or None if it is traced."""
    parts = jax.tree.leaves(value) if isinstance(value, (list, tuple)) else [value]
    if not is_known(*parts):
        return None
    try:
        array = np.asarray(value)
    except (TypeError, ValueError):  # rows that differ in length, or are not numbers
        refuse(name, value, remedy)
    if np.ma.is_masked(value) or not _is_real(array.dtype):
        refuse(name, value, remedy)
    return array


def _is_real(dtype: Any) -> bool:
    # JAX's function also knows floats that NumPy lacks, such as bfloat16.
    return jnp.issubdtype(dtype, np.floating) or jnp.issubdtype(dtype, np.integer)


def positive(x: np.ndarray) -> Any:
    """Whether numbers are positive and finite: a condition for `require`."""
    return np.isfinite(x) & (x > 0)


def as_dtype(dtype: Any) -> Any:
    """Converts a field that is a floating-point type or None."""
    # `np.dtype` would accept an array, for its dtype.
    allowed = not isinstance(dtype, (np.ndarray, np.generic, jax.Array))
    try:
        floats = (np.float32, np.float64)
        allowed = allowed and (dtype is None or np.dtype(dtype) in floats)
    except (TypeError, ValueError):
        allowed = False
    if not allowed:
        refuse("dtype", dtype, "pass float32 or float64")
    return dtype


def require_instance(name: str, value: Any, kind: type) -> None:
    """Raises a `ValueError` unless `value` is an instance of a class."""
    if not isinstance(value, kind):
        refuse(name, value, f"pass an instance of {kind.__name__}")


def require_flag(name: str, value: Any) -> bool:
    """Returns `value` as a Python bool, if it is true or false."""
    if not isinstance(value, (bool, np.bool_)):
        refuse(name, value, "pass True or False")
    return bool(value)


def require_list(name: str, value: Any, remedy: str) -> list[Any]:
    """Returns `value` as a list, if it is an iterable other than text or a mapping."""
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
        refuse(name, value, remedy)
    try:
        return list(value)
    except TypeError:  # an array without an axis
        refuse(name, value, remedy)


def require_path(name: str, value: Any) -> Path:
    """Returns `value` as a `Path`, if it is a path and not empty."""
    if not isinstance(value, (str, os.PathLike)) or not os.fspath(value):
        refuse(name, value, "pass a path, as text or a Path")
    return Path(os.fsdecode(value))


def require_key(key: Any) -> None:
    """Raises a `ValueError` unless `key` is one key of `jax.random`, typed or raw."""
    typed = isinstance(key, jax.Array) and jnp.issubdtype(key.dtype, jax.dtypes.prng_key)
    raw = isinstance(key, jax.Array) and key.dtype == jnp.uint32
    if not ((typed and key.shape == ()) or (raw and key.shape == (2,))):
        refuse("key", key, "pass one key, as jax.random.key(0)")


def require_array(name: str, value: Any, axes: str, ndim: int | None = None) -> None:
    """Raises a `ValueError` unless `value` is an array of numbers or bools, which may be
    traced, with `ndim` axes; the error shows its shape as `axes`."""
    is_array = isinstance(value, (np.ndarray, jax.Array))
    if not (is_array and (_is_real(value.dtype) or _is_bool(value))):
        refuse(name, value, f"pass an array of shape {axes}")
    if ndim is not None and value.ndim != ndim:
        raise ValueError(
            f"{name} of shape {value.shape} is not allowed: pass an array of shape {axes}."
        )


# The largest integer in JAX without its x64 mode.
_MOST = 2**31 - 1


def require_whole(
    name: str, value: Any, least: int, remedy: str, most: int | None = _MOST
) -> int:
    """Returns `value` as an `int`, if it is a whole number from `least` to `most`."""
    try:
        whole = int(value) if np.ndim(value) == 0 else 0
        is_whole = whole == value and not _is_bool(value)
    except (TypeError, ValueError, OverflowError, np.ma.MaskError):
        whole, is_whole = 0, False
    if is_whole and most == _MOST and whole > most:
        refuse(name, value, f"{remedy}, and at most {most}")
    if not is_whole or whole < least or (most is not None and whole > most):
        refuse(name, value, remedy)
    return whole


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool) or getattr(value, "dtype", None) == np.dtype(bool)


# How many characters of a value an error shows.
_LONGEST = 300


def _shown(value: Any) -> str:
    """Returns the text of a value in an error: on one line, and not too long."""
    # Python refuses to print whole numbers of more than some thousand digits.
    if isinstance(value, int) and abs(value) > 10**30:
        return f"about {'-' if value < 0 else ''}10^{math.log10(abs(value)):.0f}"
    try:
        text = " ".join(repr(value).split())
    except ValueError:  # a list with such a number
        text = f"a {type(value).__name__} of huge numbers"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
