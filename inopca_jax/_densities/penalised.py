"""What a density of a penalised rule needs in place of a mean field and a closed form.

These give other densities their domain, and something to compare with. Here a rough
solution of the same equation does: on a wide domain for the former, on the same domain for
the latter.
"""

import warnings

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._check import is_known
from .._config import Config
from .._numerics import cast
from .._rule import split_penalty
from .._types import Real, real
from .density import Density
from .grid import (
    Grid,
    SpikeNodes,
    build_grid,
    nodes_of_segments,
    require_start_on_grid,
    rounded_outwards,
    start_law,
    start_mass,
    times_between,
    without_gradient,
)

# The domain of the rough solution, in units of the one without the penalty. The tails of a
# density with a threshold are exponential: at its norm they end within this.
_WIDER = 4
# How much of the mass, given the spike's entry, may be on either side of the domain.
_TAIL_MASS = 1e-13
# An entry that grows by less than e against the others does no harm: its share of the norm
# is of order 1/p.
_HARMLESS_LOG_GROWTH = 1.0
# From half as many cells and steps twice as long to the density: errors fall by four, so
# that this share of the difference is the error.
_ERROR_SHARE = 1 / 3
_MOMENT_TOLERANCE, _L1_TOLERANCE = 0.01, 0.02


def with_times_between(config: Config) -> Config:
    """Returns the config with more times, between its own."""
    return eqx.tree_at(lambda c: c.ts, config, times_between(config)[0])


def build_wide_grid(config: Config, cells: int, nodes: int) -> Grid:
    """Returns a grid for a rough solution of which nothing is known yet."""
    constant = without_gradient(config)
    # The times stay on the host.
    parts = split_penalty(constant.rule)[0], config.ts
    unpenalised = eqx.tree_at(lambda c: (c.rule, c.ts), constant, parts)
    # Its cells are not used, only its domain.
    grid, _ = build_grid(unpenalised, 1000, nodes, None)
    radius = _WIDER * jnp.max(jnp.abs(grid.x))
    return centred_grid(cells, (-radius, radius), grid.segments)


def domain_of(config: Config, grid: Grid, density: Density) -> tuple[Real, Real]:
    """Returns an interval that contains the entries at all times of a rough solution."""
    config = without_gradient(cast(config, jnp.result_type(float)))
    return _domain_of(config, grid, density.pdf)


@eqx.filter_jit
def _domain_of(
    config: Config, grid: Grid, pdf: Float[Array, "times nodes cells"]
) -> tuple[Real, Real]:
    def outside(pdf: Array) -> Array:
        """Returns the largest mass up to each cell."""
        return grid.width * jnp.max(jnp.cumsum(pdf, axis=2), axis=(0, 1))

    first = jnp.argmax(outside(pdf) > _TAIL_MASS)
    last = grid.x.size - 1 - jnp.argmax(outside(pdf[:, :, ::-1]) > _TAIL_MASS)
    begin = jax.vmap(start_law(config).support)(grid.segments[0].xi)
    low = jnp.minimum(grid.x[first] - grid.width / 2, jnp.min(begin[0]))
    high = jnp.maximum(grid.x[last] + grid.width / 2, jnp.max(begin[1]))
    is_solved = jnp.all(jnp.isfinite(pdf))
    low, high = rounded_outwards(low, high)
    return jnp.where(is_solved, low, jnp.nan), jnp.where(is_solved, high, jnp.nan)


def build_centred_grid(
    config: Config, cells: int, nodes: int, domain: tuple[Real | float, Real | float]
) -> Grid:
    """Returns the grid on a domain, which is enlarged by less than a cell so that 0, where
    `phi` may jump, is a face between two cells."""
    low, high = (real(end) for end in domain)
    grid = centred_grid(cells, (low, high), nodes_of_segments(config, nodes))
    low, high = grid.x[0] - grid.width / 2, grid.x[-1] + grid.width / 2
    config = without_gradient(cast(config, grid.x.dtype))
    require_start_on_grid(grid, low, high, *_start_mass(config, grid, low, high))
    return grid


_start_mass = eqx.filter_jit(start_mass)


def centred_grid(
    cells: int, domain: tuple[Real, Real], segments: tuple[SpikeNodes, ...]
) -> Grid:
    """Returns a grid of cells of equal width, with a face at 0 if that is inside."""
    low, high = domain
    left = jnp.clip(jnp.round(cells * -low / (high - low)), 1, cells - 1)
    width = jnp.maximum(-low / left, high / (cells - left))
    # A domain on one side of 0 has no kink inside.
    has_zero = (low < 0) & (high > 0)
    width = jnp.where(has_zero, width, (high - low) / cells)
    first = jnp.where(has_zero, -left * width, low)
    return Grid(
        first + width * (jnp.arange(cells, dtype=width.dtype) + 0.5), width, segments
    )


def warn_if_tails_run_away(
    times: np.ndarray,
    lengths: np.ndarray,
    growing: Float[Array, " steps"],
    shrinking: Float[Array, " steps"],
) -> str:
    """Warns if entries in the tails grow against the others for so long that it matters.

    **Arguments:**

    - `times`, `lengths`: the beginnings and the lengths of all steps.
    - `growing`, `shrinking`: the `TailRates` in these steps.

    **Returns:**

    A sentence for an error that follows from it; empty if there is nothing to say.
    """
    if not is_known(growing, shrinking) or not times.size:
        return ""
    rates = np.asarray(growing, float), np.asarray(shrinking, float)
    excess = np.nan_to_num(rates[0] - rates[1], posinf=0, neginf=0)
    # The logarithm of the largest factor by which an entry grows between any two times.
    log_size = np.append(0.0, np.cumsum(lengths * excess))
    log_growth = log_size - np.minimum.accumulate(log_size)
    last = int(np.argmax(log_growth))
    if not log_growth[last] > _HARMLESS_LOG_GROWTH:
        return ""
    first = int(np.argmin(log_size[:last]))
    worst = int(np.argmax(excess))
    warnings.warn(
        f"From t = {times[first]:.4g} to t = {times[last - 1] + lengths[last - 1]:.4g} "
        "entries in the far tails run away from the others: they grow by the factor "
        f"{np.exp(min(log_growth[last], 700)):.3g} in units of the norm. The penalty adds "
        "E[x phi]/lam^2 to their rate, which exceeds gain omega q^2 + E[gain^2 S^2]/2, at "
        f"worst by {rates[0][worst]:.3g} to {rates[1][worst]:.3g}, at t = "
        f"{times[worst]:.4g}. A run at finite p ends on a few of its coordinates, which "
        "the density does not describe. Lower the penalty, or start with a larger overlap.",
        stacklevel=7,
    )
    return (
        " A wider one may not help: the tails run away, as the penalty is too strong for "
        "this overlap."
    )


def warn_if_coarse(
    config: Config, density: Density, rough: Config, compared: Density
) -> None:
    """Warns if a density is far from a rough one of the same domain.

    **Arguments:**

    - `config`, `density`: the problem and its solution.
    - `rough`, `compared`: the same with more times, and its solution on half as many cells
      in steps twice as long.
    """
    rows = np.searchsorted(rough.ts, config.ts)
    moments = [
        np.abs(np.asarray(density.q) - np.asarray(compared.q)[rows]),
        np.abs(np.asarray(density.lam) / np.asarray(compared.lam)[rows] - 1),
    ]
    weights = np.broadcast_to(density.weights, density.pdf.shape[:2])
    distance = np.empty(len(rows))
    for i, row in enumerate(rows):
        coarse = [np.interp(density.x, compared.x, pdf) for pdf in compared.pdf[row]]
        distance[i] = np.sum(weights[i] @ np.abs(density.pdf[i] - np.stack(coarse)))
    distance *= float(density.width)
    for name, differences, tolerance in (
        ("overlap or norm is", np.maximum(*moments), _MOMENT_TOLERANCE),
        ("pdf is", distance, _L1_TOLERANCE),
    ):
        errors = _ERROR_SHARE * differences
        worst = int(np.argmax(errors))
        if not errors[worst] < tolerance:
            warnings.warn(
                f"At t = {float(config.ts[worst]):.4g} the density's {name} about "
                f"{errors[worst]:.1g} off, by comparison with half as many cells and steps "
                f"twice as long: its cells, {float(density.width):.2g} wide, or its steps "
                "are too coarse. Pass more cells, a narrower domain or a smaller dt.",
                stacklevel=6,
            )
            return
