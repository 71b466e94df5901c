"""Comparison of a computed density with the exact one, on the same cells."""

import warnings

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._check import is_known
from .._config import Config
from .._order_parameters.path import Path
from .._types import Real
from .closed_form import exact_pdf, is_tabulated
from .density import Density
from .grid import Grid
from .solver import join_segments, known_segments, warn_if_moments_differ

# A density with a larger L1 distance from the exact one looks different in a figure.
_L1_TOLERANCE = 0.02
# The exact density is computed at this many of the config's times in each segment, and at
# this many points of each cell. Their mean is compared, as a cell holds an average.
_TIMES_PER_SEGMENT, _POINTS_PER_CELL = 3, 2


def warn_if_inaccurate(config: Config, grid: Grid, path: Path, density: Density) -> None:
    """Warns if a density, or its moments, are far from the exact ones.

    The moments alone are not enough: steps that are long compared with the width of a cell
    blur the edges of a density and hardly change its moments.
    """
    if not is_known(density.pdf) or warn_if_moments_differ(density, path, stacklevel=6):
        return
    counts = [int(segment.observed.sum()) for segment in known_segments(config)]
    firsts = np.cumsum(counts) - counts
    compared = [
        first + np.unique(np.linspace(0, n - 1, min(n, _TIMES_PER_SEGMENT)).astype(int))
        for first, n in zip(firsts, counts, strict=True)
    ]
    rows = np.concatenate(compared)
    config = eqx.tree_at(lambda c: c.ts, config, np.asarray(config.ts)[rows])
    distances, mass = _l1_distances(
        config, grid, path.rows(rows), tuple(map(len, compared)), density.pdf[rows]
    )
    largest = float(jnp.max(distances))
    if is_tabulated(mass) and not largest < _L1_TOLERANCE:
        t = float(config.ts[int(jnp.argmax(distances))])
        warnings.warn(
            f"At t = {t:.4g} the density is {largest:.1g} off the exact one (L1): its "
            f"steps or its cells, {float(grid.width):.2g} wide, are too coarse. Pass a "
            "smaller dt or more cells, or use ClosedForm.",
            stacklevel=5,
        )


@eqx.filter_jit
def _l1_distances(
    config: Config,
    grid: Grid,
    path: Path,
    counts: tuple[int, ...],
    pdf: Float[Array, "times nodes cells"],
) -> tuple[Float[Array, " times"], Real]:
    """Returns the L1 distances of `pdf` from the exact joint density of `(x, xi)`.

    The second value is the mass that `exact_pdf` returns.
    """
    offsets = (np.arange(_POINTS_PER_CELL) + 0.5) / _POINTS_PER_CELL - 0.5
    points = grid.x[:, None] + grid.width * jnp.asarray(offsets, grid.x.dtype)[None, :]
    fine = Grid(points.reshape(-1), grid.width / _POINTS_PER_CELL, grid.segments)
    pdfs, mass = exact_pdf(config, fine, path, counts)
    exact = join_segments(config, fine, pdfs)
    cell_means = exact.pdf.reshape(*pdf.shape, _POINTS_PER_CELL).mean(axis=-1)
    at_nodes = grid.width * jnp.sum(jnp.abs(pdf - cell_means), axis=-1)
    weights = jnp.broadcast_to(exact.weights, at_nodes.shape)
    return jnp.sum(weights * at_nodes, axis=1), mass
