"""The base class of all Modules that users hold: how they are pickled and printed."""

import dataclasses
import textwrap
from dataclasses import dataclass
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import PyTree


class PublicModule(eqx.Module):
    """A Module that shows its numbers, and keeps float64 when it is pickled or copied.

    JAX pickles its arrays completely, but loads them in the mode that is then in use: in
    float32 they would lose digits.
    """

    _shown_as: ClassVar[str | None] = None
    """A field that stands for the whole Module where it is a part of another one."""

    def __getstate__(self) -> dict[str, Any]:
        return to_pickle(vars(self))

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(from_pickle(state))

    def __repr__(self) -> str:
        return show(self)


_LINE, _ENTRIES = 88, 6


def show(value: Any, width: int | None = _LINE, entries: int | None = _ENTRIES) -> str:
    """Returns a Module, or anything in it, as text with its numbers.

    **Arguments:**

    - `value`: what to show.
    - `width`: the length from which on a Module takes several lines, `None` for one line.
    - `entries`: how many numbers of an array are shown, `None` for all.
    """
    if isinstance(value, eqx.Module):
        parts = [
            f"{field.name}={_show_field(field, getattr(value, field.name), width, entries)}"
            for field in dataclasses.fields(value)
            if field.repr and not _is_left_out(field, getattr(value, field.name))
        ]
        line = f"{type(value).__name__}({', '.join(parts)})"
        if width is None or len(line) <= width:
            return line
        lines = textwrap.indent(",\n".join(parts), "    ")
        return f"{type(value).__name__}(\n{lines},\n)"
    if isinstance(value, (tuple, list)):
        left, right = ("[", "]") if isinstance(value, list) else ("(", ")")
        comma = "," if isinstance(value, tuple) and len(value) == 1 else ""
        inside = ", ".join(show(part, width, entries) for part in value)
        return f"{left}{inside}{comma}{right}"
    if isinstance(value, (np.ndarray, np.generic, jax.Array)) and _is_numbers(value):
        return _show_array(np.asarray(value), entries)
    if isinstance(value, jax.Array):  # traced, or a key
        return eqx.tree_pformat(value)
    return repr(value)


def _is_left_out(field: Any, value: Any) -> bool:
    """Whether an optional part is absent, and not shown."""
    return value is None and bool(field.metadata.get("is_optional"))


def _show_field(field: Any, value: Any, width: int | None, entries: int | None) -> str:
    shown_as = getattr(type(value), "_shown_as", None)
    value = value if shown_as is None else getattr(value, shown_as)
    is_known = not isinstance(value, Tracer) and np.ndim(value) == 0
    if field.metadata.get("is_whole") and is_known:
        return str(int(value))
    return show(value, width, entries)


def _show_array(array: np.ndarray, entries: int | None) -> str:
    if array.ndim == 0:
        return str(array[()])
    if array.ndim > 1 and entries is not None and array.size > entries:
        return f"{array.dtype}{list(array.shape)}".replace(" ", "")
    if array.ndim > 1:
        return f"[{', '.join(_show_array(row, entries) for row in array)}]"
    numbers = [str(number) for number in array]
    if entries is None or len(numbers) <= entries:
        return f"[{', '.join(numbers)}]"
    return f"[{numbers[0]}, {numbers[1]}, ..., {numbers[-1]}] ({len(numbers)} numbers)"


def _is_numbers(array: Any) -> bool:
    """Whether an array is known, and no array of keys."""
    is_key = jnp.issubdtype(array.dtype, jax.dtypes.extended)
    return not isinstance(array, Tracer) and not is_key


@dataclass(frozen=True)
class _HostArray:
    """A JAX array, as a NumPy array."""

    array: np.ndarray


def to_pickle(tree: PyTree) -> PyTree:
    """Returns `tree` with JAX arrays in a form that `from_pickle` restores exactly."""

    def convert(leaf: Any) -> Any:
        # Not keys, and nothing traced, as in a copy inside of a transformation.
        is_plain = isinstance(leaf, jax.Array) and _is_numbers(leaf)
        return _HostArray(np.asarray(leaf)) if is_plain else leaf

    return jax.tree.map(convert, tree)


def from_pickle(tree: PyTree) -> PyTree:
    """Returns the tree that `to_pickle` was given."""
    restore = lambda x: jnp.asarray(x.array) if isinstance(x, _HostArray) else x
    with jax.enable_x64(True):
        return jax.tree.map(restore, tree)
