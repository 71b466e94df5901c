"""A computed density held against the exact one, on the same cells."""

import warnings

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._check import is_known
from .._config import Config
from .._order_parameters.path import Path
from .._types import Real
from .closed_form import evaluate, is_tabulated
from .density import Density
from .grid import Grid
from .solver import collected, stretches, warn_if_astray

# A density that is further from the exact one, in L1, looks different in a figure.
_FAR = 0.02
# In each phase the exact density is computed at this many of the config's times, and in
# each cell at this many points, of which the mean is compared: a cell has an average.
_TIMES, _POINTS = 3, 2


def warn_if_inaccurate(config: Config, grid: Grid, path: Path, density: Density) -> None:
    """Warns if the moments of a density, or the density itself, are not the exact ones.

    The moments alone do not tell: steps that are long against the width of the cells blur
    the edges of a density and hardly change its moments.
    """
    if not is_known(density.pdf) or warn_if_astray(density, path, stacklevel=6):
        return
    counts = [len(segment.picked) for segment in stretches(config)]
    firsts = np.cumsum(counts) - counts
    picked = [
        first + np.unique(np.linspace(0, count - 1, min(count, _TIMES)).astype(int))
        for first, count in zip(firsts, counts, strict=True)
    ]
    rows = np.concatenate(picked)
    some = eqx.tree_at(lambda c: c.ts, config, np.asarray(config.ts)[rows])
    distances, mass = _distances(
        some, grid, path.rows(rows), tuple(map(len, picked)), density.pdf[rows]
    )
    worst = float(jnp.max(distances))
    if is_tabulated(mass) and not worst < _FAR:
        t = float(some.ts[int(jnp.argmax(distances))])
        warnings.warn(
            f"At t = {t:.4g} the density is {worst:.1g} off the exact one (L1): its steps "
            f"or its cells, {float(grid.width):.2g} wide, are too coarse. Pass a smaller "
            "dt or more cells, or use ClosedForm.",
            stacklevel=5,
        )


@eqx.filter_jit
def _distances(
    config: Config,
    grid: Grid,
    path: Path,
    counts: tuple[int, ...],
    pdf: Float[Array, "times nodes cells"],
) -> tuple[Float[Array, " times"], Real]:
    """The L1 distances of `pdf` from the exact joint density at the times of `path`, and
    the mass that `evaluate` returns."""
    offsets = (np.arange(_POINTS) + 0.5) / _POINTS - 0.5
    points = grid.x[:, None] + grid.width * jnp.asarray(offsets, grid.x.dtype)[None, :]
    fine = Grid(points.reshape(-1), grid.width / _POINTS, grid.phases)
    rows, mass = evaluate(config, fine, path, counts)
    exact = collected(config, fine, rows)
    means = exact.pdf.reshape(*pdf.shape, _POINTS).mean(axis=-1)
    each = grid.width * jnp.sum(jnp.abs(pdf - means), axis=-1)
    weights = jnp.broadcast_to(exact.weights, each.shape)
    return jnp.sum(weights * each, axis=1), mass
