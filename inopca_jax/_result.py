"""Results as files, as datasets of xarray and as data frames of pandas."""

import abc
import dataclasses
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ._check import Checked, refuse, require_path
from ._extras import import_extra
from ._files import whole_file
from ._module import PublicModule

Variables: TypeAlias = dict[str, tuple[tuple[str, ...], Array | np.ndarray]]
"""Arrays by name, each with the names of its dimensions."""

Result = TypeVar("Result", bound="AbstractResult")

_FORMAT = 1
_HEADER = "header"


class AbstractResult(PublicModule):
    """A result with arrays over time, which can be saved, loaded and tabulated."""

    @abc.abstractmethod
    def _variables(self) -> tuple[Variables, Variables, str]:
        """Returns the variables and the coordinates of `to_xarray`, and the default of
        `kind`, which is empty if names get no suffix."""

    def to_xarray(self, kind: Checked[str | None] = None) -> Any:
        """Returns the arrays as an `xarray.Dataset`, which needs the extra `sweep`.

        Names, dimensions and coordinates are those of a `sweep`: `time`, and `trial` if
        there are trials. Simulations have the variables `q_trials` and `lam_trials`, and
        `finite`, the number of trials that did not diverge. A path, of shape (times,), is
        taken for theory, and has `q_theory` and `lam_theory`; if it is something else, such
        as `runs.mean()`, pass `kind="mean"`. Densities have their own names.

        **Arguments:**

        - `kind`: what the names of the variables end in, such as `"mean"` for `q_mean`.

        **Returns:**

        An `xarray.Dataset`.
        """
        xarray = import_extra("xarray", "to_xarray", "sweep")
        if kind is not None and not (isinstance(kind, str) and kind.isidentifier()):
            refuse("kind", kind, "pass a word, such as 'mean', or leave it out")
        variables, coords, default = self._variables()
        suffix = f"_{kind or default}" if kind or default else ""
        # What has no dimensions is a count, and not a variable of this kind.
        named = {f"{n}{suffix}" if v[0] else n: v for n, v in variables.items()}
        as_numpy = lambda these: {n: (d, np.asarray(a)) for n, (d, a) in these.items()}
        return xarray.Dataset(as_numpy(named), as_numpy(coords))

    def to_pandas(self, kind: Checked[str | None] = None) -> Any:
        """Returns the arrays as a `pandas.DataFrame`, which needs the extra `sweep`.

        It has one row for each time of each trial (and each point of a density, or entry of
        a snapshot), and a column for each dimension, coordinate and variable of
        `to_xarray`.

        **Arguments:**

        - `kind`: as of `to_xarray`.

        **Returns:**

        A `pandas.DataFrame`.
        """
        import_extra("pandas", "to_pandas", "sweep")
        import_extra("xarray", "to_pandas", "sweep")
        dataset = self.to_xarray(kind)
        counts = [name for name, array in dataset.data_vars.items() if not array.dims]
        return dataset.drop_vars(counts).to_dataframe().reset_index()

    def save(self, path: Checked[str | Path]) -> None:
        """Saves all arrays to a file that `load` reads, in the precision that they have.

        The file is written completely or not at all.

        **Arguments:**

        - `path`: a path that ends in `.npz`. A file that is there is replaced.
        """
        path = require_path("path", path)
        if path.suffix != ".npz":
            refuse("path", str(path), "pass a path that ends in .npz")
        leaves = dict(_leaves(self))
        arrays = {name: np.asarray(leaf) for name, leaf in leaves.items()}
        for name, array in arrays.items():
            if array.dtype.kind not in "biuf":  # NumPy cannot store bfloat16, for example
                raise ValueError(
                    f"{name} of type {array.dtype} cannot be saved: convert it to float32."
                )
        header = dict(
            type=type(self).__name__,
            format=_FORMAT,
            jax=[name for name, leaf in leaves.items() if isinstance(leaf, jax.Array)],
        )
        with whole_file(path) as temporary, open(temporary, "wb") as file:
            arrays[_HEADER] = np.array(json.dumps(header))
            np.savez(file, **arrays)  # pyright: ignore[reportArgumentType]

    @classmethod
    def load(cls: type[Result], path: Checked[str | Path]) -> Result:
        """Returns the result that `save` wrote, with the same numbers in any mode of JAX.

        **Arguments:**

        - `path`: a file that `save` of the same type wrote.

        **Returns:**

        An instance of this class.
        """
        path = require_path("path", path)
        if not path.is_file():
            raise ValueError(f"path = {path} is not a file: pass one that save wrote.")
        remedy = "pass a file that save wrote"
        try:
            # Opened here: if it is damaged, `np.load` would not close it.
            with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
                arrays = dict(archive)
            header = json.loads(arrays.pop(_HEADER).item())
            kind, version, on_device = (header[key] for key in ("type", "format", "jax"))
        # A damaged or another file raises almost anything.
        except Exception as error:
            reason = type(error).__name__
            raise ValueError(
                f"path = {path} is damaged, or is no saved result ({reason}): {remedy}."
            ) from error
        if version != _FORMAT:
            raise ValueError(
                f"path = {path} has the format {version}, and this version of inopca_jax "
                f"reads {_FORMAT}: save it with this version."
            )
        if kind != cls.__name__:
            raise ValueError(
                f"path = {path} has a {kind} and no {cls.__name__}: call {kind}.load."
            )
        with jax.enable_x64(True):
            leaves = {n: jnp.asarray(a) if n in on_device else a for n, a in arrays.items()}
        try:
            return _build(cls, leaves)
        except (KeyError, ValueError) as error:
            raise ValueError(
                f"path = {path} does not have the arrays of a {kind} ({error}): {remedy}."
            ) from error


def _leaves(result: eqx.Module, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yields all fields by name, those of a field that is a Module with dotted names."""
    for field in dataclasses.fields(result):
        value, name = getattr(result, field.name), prefix + field.name
        if isinstance(value, eqx.Module):
            yield from _leaves(value, f"{name}.")
        else:
            yield name, value


def _build(cls: Any, leaves: Mapping[str, Any], prefix: str = "") -> Any:
    """Returns the Module of a class whose fields `_leaves` has yielded."""
    values: dict[str, Any] = {}
    for field in dataclasses.fields(cls):
        name = prefix + field.name
        if isinstance(field.type, type) and issubclass(field.type, eqx.Module):
            values[field.name] = _build(field.type, leaves, f"{name}.")
        elif field.metadata.get("static"):
            values[field.name] = leaves[name].item()
        else:
            values[field.name] = leaves[name]
    return cls(**values)
