"""The density in closed form: scaled, shifted and convolved."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy.stats import norm
from jaxtyping import Array, Float

from .._check import Checked, is_known
from .._config import Config, cast
from .._order_parameters.path import Move, Path
from .._start import AbstractGaussianStart, panels
from .._types import Real
from .density import Density
from .grid import Grid, Law, Nodes, as_domain, law_of, lay, whole_cells, whole_nodes
from .solver import AbstractDensitySolver, collected, stretches, warn_if_astray

# Panels of eight nodes each: for a start, on its reach; for the marginal that a new spike
# meets, on the whole grid.
_PANELS, _PANELS_AFTER = 32, 128
_NORMALS, _WEIGHTS = np.polynomial.hermite_e.hermegauss(32)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()


class ClosedForm(AbstractDensitySolver):
    """The exact solution of `eq:strong_pde`, given `q` and `lam` from the mean field.

    The drift is affine, so an entry is `e^a x_0 + b xi` plus a Gaussian. From a Gaussian
    start it is `N(q lam xi, lam^2 (1 - q^2))`; from any other, and after a change of the
    spike, the convolution is done by quadrature, to about 1e-9 for smooth densities. Its
    grid is that of `FokkerPlanck`, on which it is sampled at the centres of the cells.
    """

    cells: int = eqx.field(static=True, converter=whole_cells, default=400)
    nodes: int = eqx.field(static=True, converter=whole_nodes, default=32)
    domain: tuple[float, float] | None = eqx.field(
        static=True, converter=as_domain, default=None
    )

    def solve(self, config: Checked[Config]) -> Density:
        counts = tuple(len(s.picked) for s in stretches(config))
        grid, path = lay(config, self.cells, self.nodes, self.domain, differentiable=True)
        rows, mass = evaluate(config, grid, path, counts)
        density = collected(config, grid, rows)
        if is_known(mass) and not is_tabulated(mass):
            raise ValueError(
                f"times = {config.model.changes()} is not allowed for ClosedForm: the "
                "spike changes so soon that the density is too narrow to be tabulated. Use "
                "FokkerPlanck."
            )
        warn_if_astray(density, path)
        return density


class _Cloud(eqx.Module):
    """The law of `points + width g`, the points having these masses."""

    points: Float[Array, " points"]
    masses: Float[Array, " points"]
    width: Real

    def moved(self, move: Move, xi: Real) -> "_Cloud":
        points = move.shrink * self.points + move.shift * xi
        return _Cloud(points, self.masses, jnp.hypot(move.shrink * self.width, move.sd))

    def pdf(self, x: Float[Array, " x"]) -> Float[Array, " x"]:
        return norm.pdf(x[:, None], self.points[None, :], self.width) @ self.masses


@eqx.filter_jit
def evaluate(
    config: Config, grid: Grid, path: Path, counts: tuple[int, ...]
) -> tuple[list[Float[Array, "times cells nodes"]], Real]:
    """The exact density at the times of `path`, of which `counts` are in each phase; and
    the mass of the marginal that is tabulated at a change of the spike, the one farthest
    from 1 if there are several."""
    config = cast(config, jnp.result_type(float))
    law, kept, first, cloud = law_of(config), [], 0, None
    mass = jnp.ones((), grid.x.dtype)
    gaussian = isinstance(config.start, AbstractGaussianStart)
    for i, count in enumerate(counts):
        nodes = grid.phases[i]

        def at(move: Move, xi: Real, x: Array, cloud=cloud) -> Array:
            if cloud is not None:
                return cloud.moved(move, xi).pdf(x)
            if gaussian:
                return norm.pdf(x, move.centre * xi, move.radius)
            return _convolved(law, move, xi, x)

        def now(move: Move, at=at, nodes=nodes) -> Float[Array, "cells nodes"]:
            return jax.vmap(lambda xi: at(move, xi, grid.x), out_axes=1)(nodes.xi)

        moves = jax.tree.map(lambda a, n=first, m=count: a[n : n + m], path.at_times(i))
        kept.append(lax.map(now, moves))
        first += count
        if i + 1 < len(counts):
            cloud = _marginal(cloud, law, gaussian, path.at_end(i), grid, nodes)
            now_mass = jnp.sum(cloud.masses)
            mass = jnp.where(jnp.abs(now_mass - 1) > jnp.abs(mass - 1), now_mass, mass)
    return kept, mass


def is_tabulated(mass: Real) -> bool:
    """Whether the marginals at changes of the spike were wide enough to be tabulated."""
    return bool(abs(mass - 1) < 1e-6)


def _begun(law: Law, xi: Real) -> _Cloud:
    """The start, as points."""
    x, w = panels(*law.reach(xi), _PANELS)
    masses = w * jax.vmap(law.pdf, (0, None))(x, xi)
    return _Cloud(x, masses, jnp.zeros_like(xi))


def _convolved(law: Law, move: Move, xi: Real, x: Array) -> Array:
    """The density of `shrink x + shift xi + sd g`, where `x` has the start's law."""
    low, high = law.reach(xi)
    # Gauss's panels resolve a kernel that is as wide as half of one; where it is
    # narrower, the start's density is what is smooth on the kernel's scale.
    wide = move.sd > move.shrink * (high - low) / _PANELS / 2

    def over_start() -> Array:
        safe = eqx.tree_at(lambda m: m.sd, move, jnp.where(wide, move.sd, 1))
        return _begun(law, xi).moved(safe, xi).pdf(x)

    def over_kernel() -> Array:
        g, w = (jnp.asarray(a, x.dtype) for a in (_NORMALS, _WEIGHTS))
        before = (x[:, None] - move.shift * xi - move.sd * g[None, :]) / move.shrink
        every = jax.vmap(jax.vmap(law.pdf, (0, None)), (0, None))
        return every(before, xi) @ w / move.shrink

    return lax.cond(wide, over_start, over_kernel)


def _marginal(
    cloud: _Cloud | None, law: Law, gaussian: bool, end: Move, grid: Grid, nodes: Nodes
) -> _Cloud:
    """What the next spike meets, whatever its entries: the law at the end of a phase.

    Half of each kernel's variance is spent on spreading the points, which are then few
    and smooth; the other half stays with them.
    """

    def ended(xi: Real) -> _Cloud:
        if cloud is not None:
            return cloud.moved(end, xi)
        if gaussian:
            one = jnp.ones((1,), xi.dtype)
            return _Cloud(end.centre * xi * one, one, end.radius)
        return _begun(law, xi).moved(end, xi)

    def narrowed(cloud: _Cloud) -> _Cloud:
        return eqx.tree_at(lambda c: c.width, cloud, cloud.width / 2**0.5)

    x, w = panels(grid.x[0], grid.x[-1], _PANELS_AFTER)
    given = lax.map(lambda xi: narrowed(ended(xi)).pdf(x), nodes.xi)
    width = ended(nodes.xi[0]).width / 2**0.5
    return _Cloud(x, w * (nodes.weight @ given), width)
