"""The density in closed form: the start's law scaled, shifted and convolved."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy.stats import norm
from jaxtyping import Array, Float

from .._check import Checked, is_known, require_instance
from .._config import Config
from .._model.spike import node_count
from .._numerics import cast, gauss_legendre
from .._order_parameters.path import Path
from .._rule import require_rates
from .._start import AbstractGaussianStart
from .._types import Real
from .density import Density
from .grid import Grid, SpikeNodes, StartLaw, as_domain, build_grid, cell_count, start_law
from .solver import (
    AbstractDensitySolver,
    join_segments,
    known_segments,
    require_normal_if_turning,
    warn_if_moments_differ,
)
from .transition import AffineTransition, transition_to_end, transitions

# Panels of the Gauss-Legendre rules, with 8 nodes each: on the support of the start, and
# on the whole grid for the marginal at a switch.
_START_PANELS, _SWITCH_PANELS = 32, 128
_NORMAL_NODES, _NORMAL_WEIGHTS = np.polynomial.hermite_e.hermegauss(32)
_NORMAL_WEIGHTS = _NORMAL_WEIGHTS / _NORMAL_WEIGHTS.sum()


class ClosedForm(AbstractDensitySolver):
    """The exact solution of `eq:strong_pde`, given `q` and `lam` from the mean field.

    The drift is affine, so an entry is `e^a x_0 + b xi` plus a Gaussian. From a Gaussian
    start it is `N(q lam xi, lam^2 (1 - q^2))`. From any other start, and after a switch of
    the spike, the convolution is computed by quadrature, to about 1e-9 for smooth
    densities. The grid is that of `FokkerPlanck`; the density is sampled at the centres of
    the cells.

    Of a spike that turns, it is the density given the entry that the spike has at the time.
    It is the same normal law, if the entries are normal from the start (`Gaussian`): then
    an entry of the estimate and that of the spike are jointly normal. Other spikes that
    turn are refused.

    **Arguments:**

    - `cells`: the number of cells, at least 16.
    - `nodes`: the number of nodes of the quadrature over the spike's entry; a law of point
      masses has its own.
    - `domain`: the interval `(low, high)` that the cells cover; chosen from the mean field
      if `None`.

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> config = ino.Config(start=ino.WarmStart(q0=0.3), ts=[0.0, 10.0])
    >>> pdf = ino.density(config, solver=ino.ClosedForm(cells=200))
    >>> round(float(pdf.q[0]), 3)
    0.3
    ```
    """

    cells: int = eqx.field(static=True, converter=cell_count, default=400)
    nodes: int = eqx.field(static=True, converter=node_count, default=32)
    domain: tuple[float, float] | None = eqx.field(
        static=True, converter=as_domain, default=None
    )

    def solve(self, config: Checked[Config]) -> Density:
        require_instance("config", config, Config)
        require_rates(config.rule, "ClosedForm")
        counts = tuple(int(s.observed.sum()) for s in known_segments(config))
        require_normal_if_turning(config)
        grid, path = build_grid(
            config, self.cells, self.nodes, self.domain, differentiable=True
        )
        pdfs, mass = exact_pdf(config, grid, path, counts)
        density = join_segments(config, grid, pdfs)
        if is_known(mass) and not is_tabulated(mass):
            raise ValueError(
                f"times = {config.model.changes()} is not allowed for ClosedForm: the "
                "spike changes so soon that the density is too narrow to be tabulated. Use "
                "FokkerPlanck."
            )
        warn_if_moments_differ(density, path)
        return density


class _NormalMixture(eqx.Module):
    """The law of `points + width g`: normal laws about `points`, with weights `masses`."""

    points: Float[Array, " points"]
    masses: Float[Array, " points"]
    width: Real

    def after(self, transition: AffineTransition, xi: Real) -> "_NormalMixture":
        """Returns the law after a transition, given the spike's entry `xi`."""
        points = transition.scale * self.points + transition.shift * xi
        width = jnp.hypot(transition.scale * self.width, transition.noise_std)
        return _NormalMixture(points, self.masses, width)

    def pdf(self, x: Float[Array, " x"]) -> Float[Array, " x"]:
        return norm.pdf(x[:, None], self.points[None, :], self.width) @ self.masses


@eqx.filter_jit
def exact_pdf(
    config: Config, grid: Grid, path: Path, counts: tuple[int, ...]
) -> tuple[list[Float[Array, "_ cells _"]], Real]:
    """Returns the exact density at the times of `path`.

    **Arguments:**

    - `config`, `grid`: the problem, and the points `grid.x` to evaluate the density at.
    - `path`: the mean field.
    - `counts`: how many of its times are in each segment.

    **Returns:**

    An array for each segment, of shape (times, cells, nodes); and the mass of the marginal
    that is tabulated at a switch, the one farthest from 1 if there are several.
    """
    config = cast(config, jnp.result_type(float))
    law, pdfs, first = start_law(config), [], 0
    mass = jnp.ones((), grid.x.dtype)
    gaussian = isinstance(config.start, AbstractGaussianStart)
    initial: _NormalMixture | None = None  # the law after a switch
    for i, count in enumerate(counts):
        nodes = grid.segments[i]

        def given_xi(
            to: AffineTransition, xi: Real, initial: _NormalMixture | None = initial
        ) -> Array:
            if initial is not None:
                return initial.after(to, xi).pdf(grid.x)
            if gaussian:
                return norm.pdf(grid.x, to.gaussian_slope * xi, to.gaussian_std)
            return _convolved_start(law, to, xi, grid.x)

        def at_time(
            to: AffineTransition, given_xi=given_xi, nodes=nodes
        ) -> Float[Array, "cells nodes"]:
            return jax.vmap(lambda xi: given_xi(to, xi), out_axes=1)(nodes.xi)

        rows = slice(first, first + count)
        to_times = jax.tree.map(lambda a, rows=rows: a[rows], transitions(path, i))
        pdfs.append(lax.map(at_time, to_times))
        first += count
        if i + 1 < len(counts):
            end = transition_to_end(path, i)
            initial = _marginal(initial, law, gaussian, end, grid, nodes)
            tabulated = jnp.sum(initial.masses)
            mass = jnp.where(jnp.abs(tabulated - 1) > jnp.abs(mass - 1), tabulated, mass)
    return pdfs, mass


def is_tabulated(mass: Real) -> bool:
    """Whether the marginals at switches were wide enough for their table."""
    return bool(abs(mass - 1) < 1e-6)


def _start_as_points(law: StartLaw, xi: Real) -> _NormalMixture:
    """Returns the start's law as point masses at the nodes of a quadrature."""
    x, weights = gauss_legendre(*law.support(xi), _START_PANELS)
    masses = weights * jax.vmap(law.pdf, (0, None))(x, xi)
    return _NormalMixture(x, masses, jnp.zeros_like(xi))


def _convolved_start(law: StartLaw, to: AffineTransition, xi: Real, x: Array) -> Array:
    """Returns the density at `x` after a transition from the start."""
    low, high = law.support(xi)
    # Panels resolve a Gaussian kernel that is at least as wide as half a panel. For a
    # narrower kernel it is the start's density that is smooth on the scale of the other.
    wide = to.noise_std > to.scale * (high - low) / _START_PANELS / 2

    def over_start() -> Array:
        # Positive also where this branch is not taken, for the sake of its derivative.
        safe = eqx.tree_at(lambda t: t.noise_std, to, jnp.where(wide, to.noise_std, 1))
        return _start_as_points(law, xi).after(safe, xi).pdf(x)

    def over_kernel() -> Array:
        g, weights = (jnp.asarray(a, x.dtype) for a in (_NORMAL_NODES, _NORMAL_WEIGHTS))
        x_start = (x[:, None] - to.shift * xi - to.noise_std * g[None, :]) / to.scale
        pdf = jax.vmap(jax.vmap(law.pdf, (0, None)), (0, None))
        return pdf(x_start, xi) @ weights / to.scale

    return lax.cond(wide, over_start, over_kernel)


def _marginal(
    initial: _NormalMixture | None,
    law: StartLaw,
    gaussian: bool,
    end: AffineTransition,
    grid: Grid,
    nodes: SpikeNodes,
) -> _NormalMixture:
    """Returns the marginal law of an entry at a switch, tabulated on the grid.

    It is the initial law of the next segment whatever the new spike's entry, which is
    independent. The table has the marginal with half of each kernel's variance, which a
    few points resolve; the other half is the width of the mixture.
    """

    def at_end(xi: Real) -> _NormalMixture:
        if initial is not None:
            return initial.after(end, xi)
        if gaussian:
            one = jnp.ones((1,), xi.dtype)
            return _NormalMixture(end.gaussian_slope * xi * one, one, end.gaussian_std)
        return _start_as_points(law, xi).after(end, xi)

    def with_half_the_variance(law: _NormalMixture) -> _NormalMixture:
        return eqx.tree_at(lambda m: m.width, law, law.width / 2**0.5)

    x, weights = gauss_legendre(grid.x[0], grid.x[-1], _SWITCH_PANELS)
    pdf = lax.map(lambda xi: with_half_the_variance(at_end(xi)).pdf(x), nodes.xi)
    width = at_end(nodes.xi[0]).width / 2**0.5
    return _NormalMixture(x, weights * (nodes.weights @ pdf), width)
