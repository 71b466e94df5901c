"""The grid that a density is computed on: cells for `x`, quadrature nodes for `xi`."""

import itertools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from .._check import is_known, reals_on_host, refuse, require_whole
from .._config import Config
from .._model import AbstractSpike
from .._numerics import cast, gauss_legendre
from .._order_parameters.integrate import make_integrator
from .._order_parameters.path import Path, follow, known_times
from .._start import NORMAL_SUPPORT, AbstractGaussianStart, AbstractStart, support_arrays
from .._types import Real, real
from .transition import transition_to_end, transitions

# The domain is chosen from the mean field at this many times of every segment.
_TIMES_PER_SEGMENT = 33


class SpikeNodes(eqx.Module):
    """Nodes and weights that stand for the law of the spike's entry in one segment.

    They are the law's point masses if `atoms`, and else those of a quadrature.
    """

    xi: Float[Array, " nodes"]
    weights: Float[Array, " nodes"]
    atoms: bool = eqx.field(static=True)


class Grid(eqx.Module):
    """The centres of the cells, their width, and the spike's nodes in every segment."""

    x: Float[Array, " cells"]
    width: Real
    segments: tuple[SpikeNodes, ...]


class StartLaw(eqx.Module):
    """The law of `scale x`, where `x` has the law of `start`."""

    start: AbstractStart
    scale: Real

    def pdf(self, x: Real, xi: Real) -> Real:
        return self.start.pdf(x / self.scale, xi) / self.scale

    def support(self, xi: Real) -> tuple[Real, Real]:
        low, high = support_arrays(self.start, xi)
        return self.scale * low, self.scale * high


def start_law(config: Config) -> StartLaw:
    """Returns the law of an entry at time 0: of norm one if the rule projects."""
    _, lam0 = config.start.moments(config.model.phases()[0].spike)
    scale = 1 / lam0 if config.rule.projects else jnp.ones_like(lam0)
    return StartLaw(config.start, scale)


def spike_nodes(spike: AbstractSpike, count: int) -> SpikeNodes:
    """Returns the spike's quadrature of `count` nodes, without those of negligible weight.

    A Gauss rule for a law with tails has nodes far out with weights below 1e-13. They
    change no result in double precision, but a grid that covers them would be too coarse
    for the others.
    """
    with jax.ensure_compile_time_eval():
        xi, weights = spike.quadrature(count)
    # A law of point masses returns all of them, whatever the count.
    if xi.size != count or spike.quadrature(count + 1)[0].size == count:
        _require_point_masses(spike, xi.size)
        return SpikeNodes(xi, weights, atoms=True)
    if is_known(weights):
        heavy = np.asarray(weights) > 1e-13
        xi, weights = xi[heavy], np.asarray(weights)[heavy]
        weights = jnp.asarray(weights / weights.sum(), xi.dtype)
        if is_known(xi) and not abs(float(jnp.sum(weights * xi**2)) - 1) < 1e-3:
            raise ValueError(
                f"nodes = {count} is not allowed: a quadrature of so few nodes does "
                "not give the spike's second moment, which is one. Pass at least 2."
            )
    return SpikeNodes(xi, weights, atoms=False)


def _require_point_masses(spike: AbstractSpike, count: int) -> None:
    """Raises `ValueError` if a spike has more different entries than nodes."""
    with jax.ensure_compile_time_eval():
        entries = spike.entries(jr.key(0), 1024)
    if is_known(entries) and np.unique(entries).size > count:
        raise ValueError(
            f"spike = {spike!r} is not allowed: quadrature(nodes) has {count} nodes for "
            "any number, as if these were all values of an entry, but entries have more. "
            "Return as many nodes as are asked for, or one for each value."
        )


def build_grid(
    config: Config,
    cells: int,
    nodes: int,
    domain: tuple[float, float] | None,
    *,
    differentiable: bool = False,
) -> tuple[Grid, Path]:
    """Returns the grid for the density of `config`, and its mean field.

    **Arguments:**

    - `config`: its times and switches must be known, not traced.
    - `cells`: the number of cells.
    - `nodes`: the number of nodes of the spike's quadrature.
    - `domain`: the interval that the cells cover; if `None`, it is chosen from the mean
      field so that all but about 1e-12 of the mass stays inside.
    - `differentiable`: whether derivatives pass through the mean field.

    **Returns:**

    The grid, and the mean field at `config.ts`.
    """
    path_ts, rows = times_between(config)
    segments = nodes_of_segments(config, nodes)
    config = cast(config, jnp.result_type(float))
    path_config = config if differentiable else without_gradient(config)
    edges = None if domain is None else (real(domain[0]), real(domain[1]))
    grid, path, start_check = _grid_and_path(
        config, path_config, segments, path_ts, rows, cells, edges
    )
    require_start_on_grid(grid, *start_check)
    return grid, path


def _segment_ends(config: Config) -> list[Any]:
    ts, switches = known_times(config)
    return [0.0, *(t for t in switches if t <= ts[-1]), ts[-1]]


def times_between(config: Config) -> tuple[np.ndarray, np.ndarray]:
    """Returns the config's times with others in between, and the rows of its own.

    Between the config's times entries may be larger than at them.
    """
    ts, _ = known_times(config)
    pairs = itertools.pairwise(_segment_ends(config))
    inner = [np.linspace(*pair, _TIMES_PER_SEGMENT) for pair in pairs]
    path_ts = np.unique(np.concatenate([ts, *inner]))
    return path_ts, np.searchsorted(path_ts, ts)


def nodes_of_segments(config: Config, nodes: int) -> tuple[SpikeNodes, ...]:
    """Returns the spike's nodes in every segment that the config's times reach."""
    phases = cast(config, jnp.result_type(float)).model.phases()
    segments = tuple(spike_nodes(model.spike, nodes) for model in phases)
    return segments[: len(_segment_ends(config)) - 1]


@eqx.filter_jit
def _grid_and_path(
    config: Config, path_config: Config, segments, path_ts, rows, cells: int, edges
):
    path = follow(path_config, path_ts, make_integrator(), with_shrink=True)
    if edges is None:
        edges = lax.stop_gradient(_domain(without_gradient(config), segments, path))
    low, high = edges
    width = (high - low) / cells
    x = low + width * (jnp.arange(cells, dtype=low.dtype) + 0.5)
    grid = Grid(x, width, segments)
    return grid, path.rows(rows), (low, high, *start_mass(config, grid, low, high))


def without_gradient(config: Config) -> Config:
    """Returns the config, as a constant where it is differentiated."""

    def stop(leaf):
        return lax.stop_gradient(leaf) if eqx.is_inexact_array(leaf) else leaf

    return jax.tree.map(stop, config)


def _domain(
    config: Config, segments: tuple[SpikeNodes, ...], path: Path
) -> tuple[Real, Real]:
    """Returns an interval that contains the entries at all times of `path`.

    Its ends are rounded outwards, so that they do not move with small changes of a
    parameter.
    """
    begin = jax.vmap(start_law(config).support)(segments[0].xi)
    low, high = jnp.min(begin[0]), jnp.max(begin[1])
    gaussian = isinstance(config.start, AbstractGaussianStart)
    for i, nodes in enumerate(segments):
        # Also at the segment's end, just before the switch. Of the last segment that is a
        # time of the path.
        to = jax.tree.map(jnp.append, transitions(path, i), transition_to_end(path, i))
        if i == 0 and gaussian:
            centre = jnp.outer(to.gaussian_slope, nodes.xi)
            radius = NORMAL_SUPPORT * to.gaussian_std[:, None]
            lows, highs = centre - radius, centre + radius
        else:
            shift = jnp.outer(to.shift, nodes.xi)
            radius = NORMAL_SUPPORT * to.noise_std[:, None]
            lows = jnp.outer(to.scale, begin[0]) + shift - radius
            highs = jnp.outer(to.scale, begin[1]) + shift + radius
        within = jnp.append(path.within[i], i + 1 < len(segments))[:, None]
        low = jnp.minimum(low, jnp.min(jnp.where(within, lows, low)))
        high = jnp.maximum(high, jnp.max(jnp.where(within, highs, high)))
        if i + 1 < len(segments):
            # The new spike's entries are independent of the estimate's.
            ones = jnp.ones_like(segments[i + 1].xi)
            begin = (jnp.min(lows[-1]) * ones, jnp.max(highs[-1]) * ones)
    return rounded_outwards(low, high)


def rounded_outwards(low: Real, high: Real) -> tuple[Real, Real]:
    """Returns the interval, rounded so that it contains the one given."""
    unit = 2.0 ** jnp.floor(jnp.log2(high - low)) / 64
    return jnp.floor(low / unit) * unit, jnp.ceil(high / unit) * unit


def sampled_start(config: Config, grid: Grid) -> Float[Array, "cells nodes"]:
    """Returns the start's density in the cells, as sampled at their centres.

    In a cell that is only partly inside the support, the density is sampled in the middle
    of that part and multiplied by the fraction inside.
    """
    law, edges = start_law(config), (grid.x - grid.width / 2, grid.x + grid.width / 2)

    def given_xi(xi: Real) -> Array:
        low, high = law.support(xi)
        left, right = jnp.maximum(edges[0], low), jnp.minimum(edges[1], high)
        fraction = jnp.maximum(right - left, 0) / grid.width
        middle = jnp.clip((left + right) / 2, low, high)
        return fraction * jax.vmap(law.pdf, (0, None))(middle, xi)

    return jax.vmap(given_xi, out_axes=1)(grid.segments[0].xi)


def cell_count(cells: Any) -> int:
    """The converter of a field that holds the number of cells."""
    return require_whole("cells", cells, 16, "pass a whole number of at least 16")


def as_domain(domain: Any) -> tuple[float, float] | None:
    """The converter of a field that holds an interval `(low, high)` or `None`."""
    if domain is None:
        return None
    remedy = "pass two finite numbers, the lower first, or None to have it chosen"
    ends = reals_on_host("domain", domain, remedy)
    if ends.shape != (2,) or not (np.all(np.isfinite(ends)) and ends[0] < ends[1]):
        refuse("domain", domain, remedy)
    return float(ends[0]), float(ends[1])


def start_mass(config: Config, grid: Grid, low: Real, high: Real) -> tuple[Real, Real]:
    """Returns the start's mass in `[low, high]`: by quadrature, and as sum over cells."""
    law, nodes = start_law(config), grid.segments[0]

    def mass_inside(xi: Real) -> Real:
        left, right = law.support(xi)
        x, weights = gauss_legendre(jnp.clip(left, low, high), jnp.clip(right, low, high))
        return jnp.sum(weights * jax.vmap(law.pdf, (0, None))(x, xi))

    inside = jnp.sum(nodes.weights * jax.vmap(mass_inside)(nodes.xi))
    return inside, grid.width * jnp.sum(sampled_start(config, grid) @ nodes.weights)


def require_start_on_grid(
    grid: Grid, low: Real, high: Real, inside: Real, sampled: Real
) -> None:
    """Raises `ValueError` if the domain cuts the start off, or cells do not resolve it."""
    if not is_known(low, high, inside, sampled):
        return
    if not jnp.isfinite(inside):
        raise ValueError(
            "start has no density: at |q0| = 1 every entry is a multiple of the spike's. "
            "Pass |q0| < 1."
        )
    if not abs(inside - 1) < 1e-6:
        raise ValueError(
            f"domain = ({float(low):.4g}, {float(high):.4g}) is not allowed: it holds "
            f"{float(inside):.6g} of the start's mass. Pass a wider one."
        )
    if not abs(sampled - 1) < 0.01:
        raise ValueError(
            f"cells = {grid.x.size} is not allowed: the start is narrower than a cell of "
            f"width {float(grid.width):.2g}. Pass more cells, or a narrower domain."
        )
