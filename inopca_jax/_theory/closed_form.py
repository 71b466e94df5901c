"""The density in closed form: scaled, shifted and convolved."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy.stats import norm
from jaxtyping import Array, Float

from .._config import Config, cast
from .._density import Density
from .._start import AbstractGaussianStart, panels
from .._types import Real
from .grid import Grid, Law, Nodes, law_of, lay, require_resolution
from .path import Move, Path
from .solver import AbstractDensitySolver, collected, stretches

_PANELS = 32
_NORMALS, _WEIGHTS = np.polynomial.hermite_e.hermegauss(32)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()

Evolution = Callable[[Move, Array, Real], Array]
"""The density on points after a move, given the spike's entry."""


class ClosedForm(AbstractDensitySolver):
    """The exact solution of `eq:strong_pde`, given `q` and `lam` from the mean field.

    The drift is affine, so an entry is `e^a x_0 + b xi` plus a Gaussian. From a Gaussian
    start it is `N(q lam xi, lam^2 (1 - q^2))`; from any other, and after a change of the
    spike, the convolution is done by quadrature, to about 1e-9 for smooth densities. Its
    grid is that of `FokkerPlanck`, on which it is sampled at the centres of the cells.
    """

    cells: int = eqx.field(static=True, default=400)
    nodes: int = eqx.field(static=True, default=32)
    domain: tuple[float, float] | None = eqx.field(static=True, default=None)

    def __check_init__(self):
        require_resolution(self.cells, self.nodes, self.domain)

    def solve(self, config: Config) -> Density:
        counts = tuple(len(s.picked) for s in stretches(config))
        grid, path = lay(
            config, int(self.cells), int(self.nodes), self.domain, differentiable=True
        )
        return _evaluate(config, grid, path, counts)


@eqx.filter_jit
def _evaluate(config: Config, grid: Grid, path: Path, counts: tuple[int, ...]) -> Density:
    config = cast(config, jnp.result_type(float))
    gaussian = isinstance(config.start, AbstractGaussianStart)
    law: Law | _Marginal = law_of(config)
    kept, first = [], 0
    for i, count in enumerate(counts):
        nodes = grid.phases[i]
        evolve = _normal if gaussian and i == 0 else _convolved(law)
        moves = jax.tree.map(lambda a, n=first, m=count: a[n : n + m], path.at_times(i))

        def at(move: Move, evolve=evolve, nodes=nodes) -> Float[Array, "cells nodes"]:
            return jax.vmap(lambda xi: evolve(move, grid.x, xi), out_axes=1)(nodes.xi)

        kept.append(lax.map(at, moves))
        first += count
        if i + 1 < len(counts):
            law = _Marginal(evolve, path.at_end(i), grid, nodes)
    return collected(config, grid, kept)


def _normal(move: Move, x: Array, xi: Real) -> Array:
    return norm.pdf(x, move.centre * xi, move.radius)


class _Marginal(eqx.Module):
    """What an entry's law is to the next spike's: the same for all of its entries."""

    evolve: Evolution
    end: Move
    grid: Grid
    nodes: Nodes

    def pdf(self, x: Real, xi: Real) -> Real:
        given = jax.vmap(lambda xi: self.evolve(self.end, x[None], xi)[0])(self.nodes.xi)
        return jnp.sum(self.nodes.weight * given)

    def reach(self, xi: Real) -> tuple[Real, Real]:
        return self.grid.x[0], self.grid.x[-1]


def _convolved(law: Law | _Marginal) -> Evolution:
    """The density of `shrink x + shift xi + sd g`, where `x` has the law `law`."""

    def evolve(move: Move, x: Array, xi: Real) -> Array:
        low, high = law.reach(xi)
        panel = move.shrink * (high - low) / _PANELS
        # Gauss's panels resolve a kernel that is as wide as half of one; where it is
        # narrower, the law is what is smooth on the kernel's scale.
        wide = move.sd > panel / 2
        sd = jnp.where(wide, move.sd, 1)

        def over_law() -> Array:
            at, w = panels(low, high, _PANELS)
            mass = w * jax.vmap(law.pdf, (0, None))(at, xi)
            means = move.shrink * at + move.shift * xi
            return norm.pdf(x[:, None], means[None, :], sd) @ mass

        def over_kernel() -> Array:
            g, w = (jnp.asarray(a, x.dtype) for a in (_NORMALS, _WEIGHTS))
            before = (x[:, None] - move.shift * xi - move.sd * g[None, :]) / move.shrink
            every = jax.vmap(jax.vmap(law.pdf, (0, None)), (0, None))
            return every(before, xi) @ w / move.shrink

        return lax.cond(wide, over_law, over_kernel)

    return evolve
