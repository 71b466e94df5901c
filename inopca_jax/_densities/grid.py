"""Where densities are computed: cells that hold the whole motion, nodes of the spike."""

import itertools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from .._check import is_known, reals_on_host, refuse, require_whole
from .._config import Config, cast
from .._model import AbstractSpike
from .._order_parameters.integrate import accurate
from .._order_parameters.path import Path, follow, known_times
from .._start import REACH, AbstractGaussianStart, AbstractStart, ends_of, panels
from .._types import Real, real

# How often in a phase the mean field is looked at to see how far the entries get.
_LOOKS = 33


class Nodes(eqx.Module):
    """The spike's law in one phase."""

    xi: Float[Array, " nodes"]
    weight: Float[Array, " nodes"]
    atoms: bool = eqx.field(static=True)


class Grid(eqx.Module):
    """The centres of the cells, their width, and the nodes of each phase."""

    x: Float[Array, " cells"]
    width: Real
    phases: tuple[Nodes, ...]


class Law(eqx.Module):
    """The start's law, scaled to the norm that the rule lets it have."""

    start: AbstractStart
    scale: Real

    def pdf(self, x: Real, xi: Real) -> Real:
        return self.start.pdf(x / self.scale, xi) / self.scale

    def reach(self, xi: Real) -> tuple[Real, Real]:
        low, high = ends_of(self.start, xi)
        return self.scale * low, self.scale * high


def law_of(config: Config) -> Law:
    _, lam0 = config.start.moments(config.model.phases()[0].spike)
    scale = 1 / lam0 if config.rule.projects else jnp.ones_like(lam0)
    return Law(config.start, scale)


def nodes_of(spike: AbstractSpike, count: int) -> Nodes:
    """The quadrature without the nodes that matter to no result in double precision.

    Gauss's rules for laws with tails spend nodes where there is no mass to speak of, and
    a grid that held those would be too coarse for the others.
    """
    with jax.ensure_compile_time_eval():
        xi, weight = spike.quadrature(count)
    # A law of point masses gives these, however many nodes it is asked for.
    if xi.size != count or spike.quadrature(count + 1)[0].size == count:
        return Nodes(xi, weight, atoms=True)
    if is_known(weight):
        kept = np.asarray(weight) > 1e-13
        xi, weight = xi[kept], np.asarray(weight)[kept]
        weight = jnp.asarray(weight / weight.sum(), xi.dtype)
        if is_known(xi) and not abs(float(jnp.sum(weight * xi**2)) - 1) < 1e-3:
            raise ValueError(
                f"nodes = {count} is not allowed: they do not have the spike's second "
                "moment, which is one. Pass at least 2."
            )
    return Nodes(xi, weight, atoms=False)


def lay(
    config: Config,
    cells: int,
    nodes: int,
    domain: tuple[float, float] | None,
    *,
    differentiable: bool = False,
) -> tuple[Grid, Path]:
    """The grid on which the config's density is computed, and the mean field's path at
    the config's times, through which derivatives pass only if asked to."""
    ts, changes = known_times(config)
    # Between the config's times too, where entries may get further than at them.
    ends = [0.0, *(t for t in changes if t <= ts[-1]), ts[-1]]
    legs = [np.linspace(*pair, _LOOKS) for pair in itertools.pairwise(ends)]
    looks = np.unique(np.concatenate([ts, *legs]))
    rows = np.searchsorted(looks, ts)
    config = cast(config, jnp.result_type(float))
    phases = tuple(nodes_of(model.spike, nodes) for model in config.model.phases())
    followed = config if differentiable else _fixed(config)
    edges = None if domain is None else (real(domain[0]), real(domain[1]))
    reached = phases[: len(legs)]
    grid, path, held = _laid(config, followed, reached, looks, rows, cells, edges)
    _require_held(grid, *held)
    return grid, path


@eqx.filter_jit
def _laid(config: Config, followed: Config, phases, looks, rows, cells: int, edges):
    path = follow(followed, looks, accurate(), shrinking=True)
    if edges is None:
        edges = lax.stop_gradient(_extent(_fixed(config), phases, path))
    low, high = edges
    width = (high - low) / cells
    x = low + width * (jnp.arange(cells, dtype=low.dtype) + 0.5)
    grid = Grid(x, width, phases)
    return grid, path.rows(rows), (low, high, *_held(config, grid, low, high))


def _fixed(config: Config) -> Config:
    def fix(leaf):
        return lax.stop_gradient(leaf) if eqx.is_inexact_array(leaf) else leaf

    return jax.tree.map(fix, config)


def _extent(config: Config, phases: tuple[Nodes, ...], path: Path) -> tuple[Real, Real]:
    """An interval that no entry leaves, of round numbers, so that it stays put when a
    parameter is moved a little."""
    begin = jax.vmap(law_of(config).reach)(phases[0].xi)
    low, high = jnp.min(begin[0]), jnp.max(begin[1])
    gaussian = isinstance(config.start, AbstractGaussianStart)
    for i, nodes in enumerate(phases):
        # Just before the next spike takes over, too; the last phase's end is a look.
        move = jax.tree.map(jnp.append, path.at_times(i), path.at_end(i))
        if i == 0 and gaussian:
            centre, radius = jnp.outer(move.centre, nodes.xi), REACH * move.radius
            lows, highs = centre - radius[:, None], centre + radius[:, None]
        else:
            shift, radius = jnp.outer(move.shift, nodes.xi), REACH * move.sd
            lows = jnp.outer(move.shrink, begin[0]) + shift - radius[:, None]
            highs = jnp.outer(move.shrink, begin[1]) + shift + radius[:, None]
        within = jnp.append(path.within[i], i + 1 < len(phases))[:, None]
        low = jnp.minimum(low, jnp.min(jnp.where(within, lows, low)))
        high = jnp.maximum(high, jnp.max(jnp.where(within, highs, high)))
        if i + 1 < len(phases):
            # The next spike's entries are independent of how far these have got.
            everywhere = jnp.ones_like(phases[i + 1].xi)
            begin = (jnp.min(lows[-1]) * everywhere, jnp.max(highs[-1]) * everywhere)
    unit = 2.0 ** jnp.floor(jnp.log2(high - low)) / 64
    return jnp.floor(low / unit) * unit, jnp.ceil(high / unit) * unit


def start_values(config: Config, grid: Grid) -> Float[Array, "cells nodes"]:
    """The start's density on the cells: sampled at the centres, and of a cell that
    reaches out of the law's support only the part inside counts."""
    law, edges = law_of(config), (grid.x - grid.width / 2, grid.x + grid.width / 2)

    def one(xi: Real) -> Array:
        low, high = law.reach(xi)
        left, right = jnp.maximum(edges[0], low), jnp.minimum(edges[1], high)
        share = jnp.maximum(right - left, 0) / grid.width
        inside = jnp.clip((left + right) / 2, low, high)
        return share * jax.vmap(law.pdf, (0, None))(inside, xi)

    return jax.vmap(one, out_axes=1)(grid.phases[0].xi)


def whole_cells(cells: Any) -> int:
    return require_whole("cells", cells, 16, "pass a whole number of at least 16")


def whole_nodes(nodes: Any) -> int:
    return require_whole("nodes", nodes, 1, "pass a whole number of at least 1")


def as_domain(domain: Any) -> tuple[float, float] | None:
    """Two numbers that increase, or none."""
    if domain is None:
        return None
    remedy = "pass two finite numbers, the lower first, or None to have it chosen"
    ends = reals_on_host("domain", domain, remedy)
    if ends.shape != (2,) or not (np.all(np.isfinite(ends)) and ends[0] < ends[1]):
        refuse("domain", domain, remedy)
    return float(ends[0]), float(ends[1])


def _require_held(grid: Grid, low: Real, high: Real, inside: Real, sampled: Real) -> None:
    """Refuses a domain that does not hold the start, and cells that do not resolve it."""
    if not is_known(low, high, inside, sampled):
        return
    if not jnp.isfinite(inside):
        raise ValueError(
            "start has no density: at |q0| = 1 every entry is the spike's. Pass |q0| < 1."
        )
    if not abs(inside - 1) < 1e-6:
        raise ValueError(
            f"domain = ({float(low):.4g}, {float(high):.4g}) is not allowed: it holds "
            f"{float(inside):.6g} of the start's mass. Pass a wider one."
        )
    if not abs(sampled - 1) < 0.01:
        raise ValueError(
            f"cells = {grid.x.size} is not allowed: the start is narrower than a cell of "
            f"{float(grid.width):.2g}. Pass more cells, or a narrower domain."
        )


def _held(config: Config, grid: Grid, low: Real, high: Real) -> tuple[Real, Real]:
    """The start's mass between two ends, and what the cells make of it."""
    law, nodes = law_of(config), grid.phases[0]

    def held(xi: Real) -> Real:
        a, b = law.reach(xi)
        x, w = panels(jnp.clip(a, low, high), jnp.clip(b, low, high))
        return jnp.sum(w * jax.vmap(law.pdf, (0, None))(x, xi))

    inside = jnp.sum(nodes.weight * jax.vmap(held)(nodes.xi))
    return inside, grid.width * jnp.sum(start_values(config, grid) @ nodes.weight)
