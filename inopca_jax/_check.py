"""The checks of arguments: an error names the argument, its value and the remedy.

Inside a `jit`, `vmap` or `grad` a value is not known, and passes unchecked: there a bad
number shows as a trajectory that is not `finite`.
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
        """`Checked[T]` is a `T` to those who read and to static type checkers. At run time
        it is anything, because the function itself says what is wrong with a bad one."""

        def __class_getitem__(cls, kind: Any) -> Any:
            return Annotated[Any, kind]


def is_known(*values: Any) -> bool:
    """Whether none of `values` is traced, so that Python may look at them."""
    return not any(isinstance(v, Tracer) for v in values)


def refuse(name: str, value: Any, remedy: str) -> NoReturn:
    """Raises the `ValueError` of a bad argument."""
    raise ValueError(f"{name} = {_shown(value)} is not allowed: {remedy}.")


def require(name: str, value: Any, holds: Callable[[np.ndarray], Any], remedy: str) -> None:
    """Refuses what is no array of real numbers, and numbers for which `holds` does not."""
    known = _known_reals(name, value, f"pass real numbers; {remedy}")
    if known is not None and not np.all(holds(known)):
        refuse(name, known.tolist(), remedy)


def reals(name: str, value: Any, remedy: str = "pass an array of real numbers") -> Any:
    """The array leaf for `value`, if that is real numbers, or traced."""
    known, dtype = _known_reals(name, value, remedy), jnp.result_type(float)
    if known is not None:
        largest = float(np.max(np.abs(known), initial=0, where=np.isfinite(known)))
        if largest > float(np.finfo(dtype).max):
            refuse(name, value, f"it is beyond {dtype}; pass a smaller number")
    return jnp.asarray(value, dtype=dtype)


def number(name: str, value: Any, remedy: str = "pass one real number") -> Any:
    """The array leaf for `value`, if that is one real number, or traced."""
    leaf = reals(name, value, remedy)
    if leaf.ndim:
        refuse(name, value, remedy)
    return leaf


def reals_on_host(name: str, value: Any, remedy: str) -> np.ndarray:
    """`value` as NumPy's array of Python's floats, if that is real numbers."""
    known = _known_reals(name, value, remedy)
    if known is None:
        refuse(name, value, f"it is traced; {remedy}")
    return known.astype(float)


def plain_number(
    name: str, value: Any, holds: Callable[[np.ndarray], Any], remedy: str
) -> float:
    """`value` as a Python float, if it is one real number for which `holds` does."""
    known = _known_reals(name, value, f"pass one real number; {remedy}")
    if known is None or known.ndim or not holds(known):
        refuse(name, value, remedy)
    return float(known)


def as_number(name: str) -> Callable[[Any], Any]:
    """The converter of a field that holds one number."""
    remedy = "pass one number, and batch configs with vmap"
    return lambda value: number(name, value, remedy)


def as_reals(name: str) -> Callable[[Any], Any]:
    """The converter of a field that holds an array of numbers."""
    return lambda value: reals(name, value)


def as_flag(name: str) -> Callable[[Any], bool]:
    """The converter of a field that is true or false."""
    return lambda value: require_flag(name, value)


def as_instance(name: str, kind: type) -> Callable[[Any], Any]:
    """The converter of a field that holds an instance of a class."""

    def convert(value: Any) -> Any:
        require_instance(name, value, kind)
        return value

    return convert


def as_times(name: str) -> Callable[[Any], Any]:
    """The converter of a field that holds times.

    They stay on the host, in the precision that they came in; traced ones as they are.
    `floor(p t)` is decided there, and float32 could not tell the steps of a long,
    high-dimensional run apart.
    """

    def convert(ts: Any) -> Any:
        known = _known_reals(name, ts, "pass an array of real numbers")
        if known is None:
            return jnp.asarray(ts)
        return known if np.issubdtype(known.dtype, np.floating) else known.astype(float)

    return convert


def _known_reals(name: str, value: Any, remedy: str) -> np.ndarray | None:
    """The numbers on the host; none if they are traced."""
    parts = jax.tree.leaves(value) if isinstance(value, (list, tuple)) else [value]
    if not is_known(*parts):
        return None
    try:
        array = np.asarray(value)
    except (TypeError, ValueError):  # of rows that differ in length, or not of numbers
        refuse(name, value, remedy)
    if np.ma.is_masked(value) or not _is_real(array.dtype):
        refuse(name, value, remedy)
    return array


def _is_real(dtype: Any) -> bool:
    # JAX's function, which knows the short floats that NumPy lacks.
    return jnp.issubdtype(dtype, np.floating) or jnp.issubdtype(dtype, np.integer)


def positive(x: np.ndarray) -> Any:
    return np.isfinite(x) & (x > 0)


def as_dtype(dtype: Any) -> Any:
    """The converter of a field that holds a precision, which may be `None`."""
    # An array has a dtype, and is none.
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
    if not isinstance(value, kind):
        refuse(name, value, f"pass an instance of {kind.__name__}")


def require_flag(name: str, value: Any) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        refuse(name, value, "pass True or False")
    return bool(value)


def require_list(name: str, value: Any, remedy: str) -> list[Any]:
    """The items of `value`, which is neither text nor a mapping."""
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
        refuse(name, value, remedy)
    try:
        return list(value)
    except TypeError:  # an array without an axis
        refuse(name, value, remedy)


def require_path(name: str, value: Any) -> Path:
    """`value` as a `Path`."""
    if not isinstance(value, (str, os.PathLike)) or not os.fspath(value):
        refuse(name, value, "pass a path, as text or a Path")
    return Path(os.fsdecode(value))


def require_key(key: Any) -> None:
    """Refuses what is not one key of JAX's, of either kind."""
    typed = isinstance(key, jax.Array) and jnp.issubdtype(key.dtype, jax.dtypes.prng_key)
    raw = isinstance(key, jax.Array) and key.dtype == jnp.uint32
    if not ((typed and key.shape == ()) or (raw and key.shape == (2,))):
        refuse("key", key, "pass one key, as jax.random.key(0)")


def require_array(name: str, value: Any, axes: str, ndim: int | None = None) -> None:
    """Refuses what is no array of numbers with these `axes`, which may be traced."""
    is_array = isinstance(value, (np.ndarray, jax.Array))
    if not (is_array and (_is_real(value.dtype) or _is_bool(value))):
        refuse(name, value, f"pass an array of shape {axes}")
    if ndim is not None and value.ndim != ndim:
        raise ValueError(
            f"{name} of shape {value.shape} is not allowed: pass an array of shape {axes}."
        )


# As far as JAX counts without its x64 mode.
_MOST = 2**31 - 1


def require_whole(
    name: str, value: Any, least: int, remedy: str, most: int | None = _MOST
) -> int:
    """`value` as an `int`, if it is a whole number of at least `least`, at most `most`."""
    try:
        whole = int(value) if np.ndim(value) == 0 else 0
        exact = whole == value and not _is_bool(value)
    except (TypeError, ValueError, OverflowError, np.ma.MaskError):
        whole, exact = 0, False
    if exact and most == _MOST and whole > most:
        refuse(name, value, f"{remedy}, and at most {most}")
    if not exact or whole < least or (most is not None and whole > most):
        refuse(name, value, remedy)
    return whole


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool) or getattr(value, "dtype", None) == np.dtype(bool)


# How much of a value an error shows.
_LONGEST = 300


def _shown(value: Any) -> str:
    # Python refuses to print whole numbers of more than some thousand digits.
    if isinstance(value, int) and abs(value) > 10**30:
        return f"{'-' if value < 0 else ''}10^{math.log10(abs(value)):.0f} or so"
    try:
        text = " ".join(repr(value).split())
    except ValueError:  # of a list with such a number
        text = f"a {type(value).__name__} of huge numbers"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
