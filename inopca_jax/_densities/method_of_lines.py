"""The same cells, handed to diffrax: a check of the steps in time by another's."""

from collections.abc import Callable
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax

from .._check import Checked, as_instance, plain_number, positive
from .._config import Config, cast
from .._order_parameters.integrate import Flow, require_steps
from .accuracy import warn_if_inaccurate
from .density import Density
from .fluxes import Line, hops
from .fokker_planck import (
    Moments,
    at_the_edge,
    coefficients,
    honest,
    renewed,
    require_unspilt,
    start_density,
)
from .grid import Grid, as_domain, lay, whole_cells, whole_nodes
from .solver import AbstractDensitySolver, collected, stretches


def _tolerance(name: str) -> Callable[[Any], float]:
    remedy = "pass a positive tolerance"
    return lambda value: plain_number(name, value, positive, remedy)


class MethodOfLines(AbstractDensitySolver):
    """`FokkerPlanck`'s semi-discrete system, solved by a solver of diffrax's.

    An explicit one by default, of adaptive steps: the system is stiff, so this is many
    times slower than `FokkerPlanck`, and it does not promise positive densities.
    """

    cells: int = eqx.field(static=True, converter=whole_cells, default=400)
    nodes: int = eqx.field(static=True, converter=whole_nodes, default=32)
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
        plan = [(s.begin, s.stops, s.picked) for s in stretches(config)]
        grid, path = lay(config, self.cells, self.nodes, self.domain)
        adjoint = diffrax.RecursiveCheckpointAdjoint()
        flow = Flow(self.solver, adjoint, self.rtol, self.atol, self.max_steps)
        density, spilt = _flow_along(config, grid, flow, plan)
        require_unspilt(grid, spilt)
        warn_if_inaccurate(config, grid, path, density)
        return density


@eqx.filter_jit
def _flow_along(config: Config, grid: Grid, flow: Flow, plan):
    config = cast(config, jnp.result_type(float))
    rule = config.rule
    line = Line.of(grid.x, grid.width)
    pdf, memory = start_density(config, grid, line), rule.tau.init(config.model.float_p)
    kept, spilt = [], jnp.zeros((), grid.x.dtype)
    for i, (begin, stops, picked) in enumerate(plan):
        model, nodes = config.model.phases()[i], grid.phases[i]
        if i:
            pdf = renewed(pdf, grid.phases[i - 1], nodes)

        def field(t, state, model=model, nodes=nodes):
            pdf, memory = state
            mean = Moments.of(pdf, line, nodes)
            a, drift = coefficients(rule, model, t, mean, memory)
            return hops(a, line, nodes.xi).change(pdf), drift

        def leg(carry, t1, field=field):
            t0, state = carry
            state = flow.between(field, state, t0, t1)
            return (t1, state), state[0]

        times = jnp.asarray(stops, grid.x.dtype)
        first = jnp.asarray(begin, grid.x.dtype)
        (_, (pdf, memory)), rows = lax.scan(leg, (first, (pdf, memory)), times)
        edges = jax.vmap(lambda pdf, nodes=nodes: at_the_edge(pdf, line, nodes))(rows)
        spilt = jnp.maximum(spilt, jnp.max(edges))
        kept.append(jax.vmap(line.unfold)(rows[picked]))
    return honest(collected(config, grid, kept), spilt), spilt
