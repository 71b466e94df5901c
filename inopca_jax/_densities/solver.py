"""The interface of solvers for densities, and functions that all of them use."""

import abc
import warnings

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._check import Checked, is_known, require_instance
from .._config import Config, require_single
from .._model import Gaussian
from .._module import PublicModule
from .._order_parameters.path import Path, known_times
from .._start import AbstractGaussianStart
from .._timeline import Segment, segments
from .._types import Real
from .density import Density
from .grid import Grid

# The moments of a density on coarse cells that is still useful are within this.
_MOMENT_TOLERANCE = 0.01


class AbstractDensitySolver(PublicModule):
    """A method to compute the density of the estimate's entries.

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> class AtLongTimes(ino.AbstractDensitySolver):
    ...     def solve(self, config):
    ...         return ino.steady_density(config)
    ...
    >>> ino.density(ino.Config(), solver=AtLongTimes()).x.shape
    (400,)
    ```
    """

    @abc.abstractmethod
    def solve(self, config: Checked[Config]) -> Density:
        """Returns the density at the config's times.

        **Arguments:**

        - `config`: the problem; its times must be known, not traced.
        """


def known_segments(config: Checked[Config]) -> list[Segment]:
    """Returns the segments of a run whose times are known."""
    require_instance("config", config, Config)
    require_single(config, "a density", takes_penalty=True)
    ts, switches = known_times(config)
    if not is_known(ts, switches):
        raise ValueError(
            "ts is traced, but the steps of a density are counted before it is compiled: "
            "build the Config inside the function that is jitted or mapped, from a NumPy "
            "array of times."
        )
    return segments(config, np.asarray(ts), np.asarray(switches))


def require_standing(config: Config, solver: str) -> None:
    """Refuses spikes that turn: an entry that is given then does not stay the same."""
    if any(model.turning is not None for model in config.model.phases()):
        raise ValueError(
            f"turning with {solver} is not allowed: the entry of a spike that turns does "
            "not stay the same, and the density given the entry obeys no equation of its "
            "own. Use ClosedForm() with spike = Gaussian(), steady_density, or "
            "empirical_density of snapshots."
        )


def require_normal_if_turning(config: Config) -> None:
    """Refuses spikes that turn, unless their entries are normal and stay so."""
    for i, model in enumerate(config.model.phases()):
        if model.turning is None:
            continue
        if type(model.spike) is not Gaussian:
            raise ValueError(
                f"spike = {type(model.spike).__name__} with turning is not allowed with a "
                "density: its entries become normal as it turns, and until then the "
                "density given an entry has no closed form. Use spike = Gaussian(), "
                "steady_density, or empirical_density of snapshots."
            )
        if i == 0 and not isinstance(config.start, AbstractGaussianStart):
            raise ValueError(
                f"start = {type(config.start).__name__} with a spike that turns is not "
                "allowed with a density, which then has a closed form for Gaussian starts "
                "alone. Use a WarmStart or ColdStart, or empirical_density of snapshots."
            )


def join_segments(
    config: Config, grid: Grid, pdfs: list[Float[Array, "_ cells _"]]
) -> Density:
    """Returns the `Density` of a whole run.

    `pdfs` has an array for each segment, of shape (times, cells, nodes). Segments may have
    different numbers of nodes. Those with fewer get additional nodes of weight zero, beyond
    their largest one.
    """
    laws = grid.segments[: len(pdfs)]
    most = max(nodes.xi.size for nodes in laws)

    def padded(array: Array, count: int) -> Array:
        """Pads the last axis, of `count` nodes, with zeros."""
        return jnp.pad(array, [*[(0, 0)] * (array.ndim - 1), (0, most - count)])

    rows = []
    for nodes, pdf in zip(laws, pdfs, strict=True):
        offsets = jnp.arange(1, most - nodes.xi.size + 1, dtype=grid.x.dtype)
        xi = jnp.concatenate([nodes.xi, jnp.max(nodes.xi) + offsets])
        weights = padded(nodes.weights, nodes.xi.size)
        rows.append((xi, weights, padded(pdf, nodes.xi.size), nodes.atoms))
    pdf = jnp.concatenate([row[2] for row in rows]).swapaxes(1, 2)
    if len(rows) == 1:
        xi, weights, _, atoms = rows[0]
        return Density(config.ts, grid.x, xi, weights, pdf, jnp.asarray(atoms))
    segment = np.repeat(np.arange(len(rows)), [len(pdf) for pdf in pdfs])
    xi, weights, atoms = (
        jnp.stack([jnp.asarray(row[k]) for row in rows])[segment] for k in (0, 1, 3)
    )
    return Density(config.ts, grid.x, xi, weights, pdf, atoms)


def warn_if_moments_differ(density: Density, path: Path, stacklevel: int = 5) -> bool:
    """Warns if the moments of a density differ from the mean field's, and returns whether.

    They do if the cells or the steps are too coarse. By default `stacklevel` makes the
    warning point at the line that calls `inopca_jax.density`.
    """
    if not is_known(density.pdf):
        return False
    difference = float(_moment_difference(density, path))
    if difference < _MOMENT_TOLERANCE:
        return False
    warnings.warn(
        f"The density's overlap or norm is off the mean field's by {difference:.1g}: its "
        f"cells, {float(np.max(density.width)):.2g} wide, or its steps are too coarse. "
        "Pass more cells, a narrower domain or a smaller dt.",
        stacklevel=stacklevel,
    )
    return True


@eqx.filter_jit
def _moment_difference(density: Density, path: Path) -> Real:
    """Returns the largest error of the overlap, the norm (relative) and the mass."""
    q, lam = density.q - path.q, density.lam / path.lam - 1
    return jnp.max(jnp.abs(jnp.stack([q, lam, density.moment(0) - 1])))
