"""The arrays of a config by name, such as `rule.tau` and `start.lam0`."""

import difflib
from collections.abc import Mapping
from typing import Any

import jax
from jax.tree_util import keystr, tree_flatten_with_path

from ._check import refuse
from ._config import Config


def leaves(config: Config) -> dict[str, Any]:
    """Returns all arrays of `config`, by the dotted names of their attributes."""
    pairs, _ = tree_flatten_with_path(config)
    return {keystr(path, simple=True, separator="."): leaf for path, leaf in pairs}


def full_name(config: Config, name: Any, argument: str = "") -> str:
    """Returns the full name of the array that `name` stands for.

    A name may be shortened if only one array is below it: `rule.tau` stands for
    `rule.tau.value` if the rate is constant.

    **Arguments:**

    - `config`: the config.
    - `name`: a full or shortened name.
    - `argument`: the argument that has the name, for errors.
    """
    names = list(leaves(config))
    if not isinstance(name, str):
        refuse(argument or "name", name, "pass the name of a number, such as 'rule.tau'")
    shown = f"{argument} = {name!r}" if argument else repr(name)
    matches = [full for full in names if full == name or full.startswith(f"{name}.")]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise ValueError(
            f"{shown} stands for more than one number of this config: pass one of "
            f"{', '.join(matches)}."
        )
    closest = difflib.get_close_matches(name, names, n=1, cutoff=0)
    raise ValueError(
        f"{shown} is not a number of this config. Did you mean {closest[0]!r}? It has "
        f"{', '.join(names)}."
    )


def replaced(config: Config, values: Mapping[str, Any]) -> Config:
    """Returns `config` with new values for the arrays whose full names are the keys."""
    _, tree = jax.tree.flatten(config)
    new = [values.get(name, leaf) for name, leaf in leaves(config).items()]
    return jax.tree.unflatten(tree, new)
