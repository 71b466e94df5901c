"""What a solver for densities is, and what all of them share."""

import abc
import warnings

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from .._check import Checked, is_known, require_instance
from .._config import Config
from .._order_parameters.path import Path, begin_of, known_times
from .._pickling import Pickled
from .._types import Real
from .density import Density
from .grid import Grid

# Coarse cells or steps that are still worth looking at stay below this.
_ASTRAY = 0.01


class AbstractDensitySolver(Pickled):
    """A way to get the density of the estimate's entries."""

    @abc.abstractmethod
    def solve(self, config: Checked[Config]) -> Density:
        """The density at the config's times."""


class Stretch:
    """One phase on the host: from `begin`, stop at the `stops`. The rows of `picked` are
    those of the stops that are observed, in the order of the config's times."""

    def __init__(self, begin: float, end: float | None, observed: np.ndarray):
        self.begin = begin
        # A time that is the begin's up to rounding is the begin.
        unique, self.picked = np.unique(np.maximum(observed, begin), return_inverse=True)
        self.stops = unique if end is None else np.append(unique, end)


def stretches(config: Checked[Config]) -> list[Stretch]:
    """The phases that the config's times reach."""
    require_instance("config", config, Config)
    ts, changes = known_times(config)
    if not is_known(ts, changes):
        raise ValueError(
            "ts is traced, but a density's steps are counted before anything is: build the "
            "Config inside of the function that is jitted or mapped, from numpy's times."
        )
    ts, changes = np.asarray(ts, float), np.asarray(changes, float)
    begins = np.array([0.0, *changes])
    reached = 1 + int(np.sum(ts[-1] >= begin_of(changes)))
    phase = np.sum(ts[:, None] >= begin_of(changes), axis=1)
    ends = [*changes[: reached - 1], None]
    return [Stretch(begins[i], ends[i], ts[phase == i]) for i in range(reached)]


def collected(config: Config, grid: Grid, kept: list[Array]) -> Density:
    """The densities of all phases, (times, cells, nodes), one after the other."""
    phases = grid.phases[: len(kept)]
    most = max(nodes.xi.size for nodes in phases)

    def filled(array: Array, count: int) -> Array:
        """Nodes of no weight, away from the others, so that phases have equally many."""
        return jnp.pad(array, [*[(0, 0)] * (array.ndim - 1), (0, most - count)])

    rows = []
    for nodes, pdf in zip(phases, kept, strict=True):
        missing = jnp.arange(1, most - nodes.xi.size + 1, dtype=grid.x.dtype)
        xi = jnp.concatenate([nodes.xi, jnp.max(nodes.xi) + missing])
        weight = filled(nodes.weight, nodes.xi.size)
        rows.append((xi, weight, filled(pdf, nodes.xi.size), nodes.atoms))
    pdf = jnp.concatenate([row[2] for row in rows]).swapaxes(1, 2)
    if len(rows) == 1:
        xi, weight, _, atoms = rows[0]
        return Density(config.ts, grid.x, xi, weight, pdf, jnp.asarray(atoms))
    phase = np.repeat(np.arange(len(rows)), [len(pdf) for pdf in kept])
    xi, weight, atoms = (
        jnp.stack([jnp.asarray(row[k]) for row in rows])[phase] for k in (0, 1, 3)
    )
    return Density(config.ts, grid.x, xi, weight, pdf, atoms)


def warn_if_astray(density: Density, path: Path, stacklevel: int = 5) -> bool:
    """Warns if the density's moments are not the mean field's, and says whether it has:
    then its cells or its steps are too coarse. `stacklevel` leads to who called `density`.
    """
    if not is_known(density.pdf):
        return False
    gap = float(_gap(density, path))
    if gap < _ASTRAY:
        return False
    warnings.warn(
        f"The density's overlap or norm is off the mean field's by {gap:.1g}: its "
        f"cells, {float(np.max(density.width)):.2g} wide, or its steps are too coarse. "
        "Pass more cells, a narrower domain or a smaller dt.",
        stacklevel=stacklevel,
    )
    return True


@eqx.filter_jit
def _gap(density: Density, path: Path) -> Real:
    q, lam = density.q - path.q, density.lam / path.lam - 1
    return jnp.max(jnp.abs(jnp.stack([q, lam, density.moment(0) - 1])))
