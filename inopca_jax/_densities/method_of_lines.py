"""The Fokker-Planck equation on cells, integrated by a diffrax solver as a check."""

from collections.abc import Callable
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax

from .._check import Checked, as_instance, plain_number, positive
from .._config import Config, rule_of_one
from .._model.spike import node_count
from .._numerics import cast, off_host
from .._order_parameters.integrate import Integrator, require_steps
from .._rule import initial_state, require_rates
from .accuracy import warn_if_inaccurate
from .density import Density
from .fluxes import FoldedCells, scharfetter_gummel
from .fokker_planck import (
    coefficients,
    marginal_at_switch,
    mass_at_edge,
    moments_of,
    nan_if_mass_lost,
    require_no_mass_lost,
    start_density,
)
from .grid import Grid, as_domain, build_grid, cell_count
from .solver import AbstractDensitySolver, join_segments, known_segments, require_standing


def _tolerance(name: str) -> Callable[[Any], float]:
    remedy = "pass a positive tolerance"
    return lambda value: plain_number(name, value, positive, remedy)


class MethodOfLines(AbstractDensitySolver):
    """A solver that integrates the equations of `FokkerPlanck` in time by diffrax.

    The equations are discrete in space only. The default solver of diffrax is explicit,
    with adaptive steps. The equations are stiff, so this is many times slower than
    `FokkerPlanck`, and densities may be negative.

    **Arguments:**

    - `cells`, `nodes`, `domain`: as those of `FokkerPlanck`.
    - `solver`: an instance of `diffrax.AbstractSolver`.
    - `rtol`, `atol`: the tolerances of the adaptive steps.
    - `max_steps`: the most steps between two times.

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> config = ino.Config(start=ino.WarmStart(q0=0.3), ts=[0.0, 0.2])
    >>> pdf = ino.density(config, solver=ino.MethodOfLines(cells=200, nodes=4))
    >>> round(float(pdf.q[0]), 2)
    0.3
    ```
    """

    cells: int = eqx.field(static=True, converter=cell_count, default=400)
    nodes: int = eqx.field(static=True, converter=node_count, default=32)
    domain: tuple[float, float] | None = eqx.field(
        static=True, converter=as_domain, default=None
    )
    solver: diffrax.AbstractSolver = eqx.field(
        converter=as_instance("solver", diffrax.AbstractSolver),
        default_factory=diffrax.Tsit5,
    )
    rtol: float = eqx.field(static=True, converter=_tolerance("rtol"), default=1e-7)
    atol: float = eqx.field(static=True, converter=_tolerance("atol"), default=1e-9)
    max_steps: int = eqx.field(static=True, converter=require_steps, default=1_000_000)

    def solve(self, config: Checked[Config]) -> Density:
        segments = known_segments(config)
        require_rates(config.rule, "MethodOfLines (use FokkerPlanck)")
        require_standing(config, type(self).__name__)
        plan = [(s.begin, *s.own_stops()) for s in segments]
        grid, path = build_grid(config, self.cells, self.nodes, self.domain)
        adjoint = diffrax.RecursiveCheckpointAdjoint()
        integrator = Integrator(self.solver, adjoint, self.rtol, self.atol, self.max_steps)
        density, edge_mass = _integrate(off_host(config), grid, integrator, plan)
        require_no_mass_lost(grid, edge_mass)
        warn_if_inaccurate(config, grid, path, density)
        return density


@eqx.filter_jit
def _integrate(config: Config, grid: Grid, integrator: Integrator, plan):
    """Returns the density, and the largest mass at the edge at any of the stops."""
    config = cast(config, jnp.result_type(float))
    rule = rule_of_one(config)
    cells = FoldedCells(grid.x, grid.width)
    pdf = start_density(config, grid, cells)
    schedule_state = initial_state(rule, config.model.p)
    pdfs, edge_mass = [], jnp.zeros((), grid.x.dtype)
    for i, (begin, stops, observed) in enumerate(plan):
        model, nodes = config.model.phases()[i], grid.segments[i]
        if i:
            pdf = marginal_at_switch(pdf, grid.segments[i - 1], nodes)

        def time_derivative(t, state, model=model, nodes=nodes):
            pdf, schedule_state = state
            moments = moments_of(pdf, cells, nodes)
            c, schedule_rate = coefficients(rule, model, t, moments, schedule_state)
            rates = scharfetter_gummel(c, cells, nodes.xi)
            return rates.time_derivative(pdf), schedule_rate

        def to_stop(carry, t1, time_derivative=time_derivative):
            t0, state = carry
            state = integrator.solve(time_derivative, state, t0, t1)
            return (t1, state), state[0]

        ts = jnp.asarray(stops, grid.x.dtype)
        carry = (jnp.asarray(begin, grid.x.dtype), (pdf, schedule_state))
        (_, (pdf, schedule_state)), at_stops = lax.scan(to_stop, carry, ts)
        masses = jax.vmap(lambda pdf, nodes=nodes: mass_at_edge(pdf, cells, nodes))(
            at_stops
        )
        edge_mass = jnp.maximum(edge_mass, jnp.max(masses))
        pdfs.append(jax.vmap(cells.unfold)(at_stops[observed]))
    return nan_if_mass_lost(join_segments(config, grid, pdfs), edge_mass), edge_mass
