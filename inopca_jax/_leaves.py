"""The numbers of a config by their names: `rule.tau`, `start.lam0`."""

import difflib
from collections.abc import Mapping
from typing import Any

import jax
from jax.tree_util import keystr, tree_flatten_with_path

from ._check import refuse
from ._config import Config


def leaves(config: Config) -> dict[str, Any]:
    """Every array of `config` by the path of attributes that leads to it."""
    found, _ = tree_flatten_with_path(config)
    return {keystr(path, simple=True, separator="."): leaf for path, leaf in found}


def full_name(config: Config, name: Any, argument: str = "") -> str:
    """The path to the one array that `name` leads to. It may stop where only one follows:
    `rule.tau` is `rule.tau.value` if the rate is constant. An error says which `argument`
    the name came from, if told."""
    known = leaves(config)
    if not isinstance(name, str):
        refuse(argument or "name", name, "pass the name of a number, such as 'rule.tau'")
    shown = f"{argument} = {name!r}" if argument else repr(name)
    under = [path for path in known if path == name or path.startswith(f"{name}.")]
    if len(under) == 1:
        return under[0]
    if under:
        raise ValueError(
            f"{shown} is more than one number of this config: say which of "
            f"{', '.join(under)}."
        )
    near = difflib.get_close_matches(name, known, n=1, cutoff=0)
    raise ValueError(
        f"{shown} is not a number of this config. Did you mean {near[0]!r}? It has "
        f"{', '.join(known)}."
    )


def replaced(config: Config, values: Mapping[str, Any]) -> Config:
    """`config` with other arrays at the full names that are the keys of `values`."""
    _, tree = jax.tree.flatten(config)
    new = [values.get(name, leaf) for name, leaf in leaves(config).items()]
    return jax.tree.unflatten(tree, new)
