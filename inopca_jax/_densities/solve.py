"""The density of the estimate's entries: `eq:strong_pde` and its steady state."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm

from .._check import Checked, is_known, require_instance
from .._config import Config, cast
from .._interrupt import deferred_interrupt
from .._order_parameters.steady_state import steady_state
from .._start import REACH
from .density import Density
from .fokker_planck import FokkerPlanck
from .grid import nodes_of, whole_cells, whole_nodes
from .solver import AbstractDensitySolver


def density(
    config: Checked[Config], *, solver: Checked[AbstractDensitySolver | None] = None
) -> Density:
    """The limit of the empirical law of `(x_i, xi_i)` at the config's times.

    For any rule, schedule, start and spike, also one that changes; differentiable in every
    leaf of the config but its times. `solver` is `FokkerPlanck()` unless told otherwise;
    `ClosedForm()` has the exact solution, `MethodOfLines()` hands the cells to diffrax.
    """
    require_instance("config", config, Config)
    solver = FokkerPlanck() if solver is None else solver
    require_instance("solver", solver, AbstractDensitySolver)
    with deferred_interrupt():
        return solver.solve(config)


def steady_density(
    config: Checked[Config], *, cells: Checked[int] = 400, nodes: Checked[int] = 32
) -> Density:
    """The density after a long time, `eq:steady_state_dist`, at the one time infinity.

    `N(q_s lam_s xi, lam_s^2 (1 - q_s^2))`, on either side of the transition: below it
    `q_s = 0`, above it the overlap has the start's sign, and of a start without one that
    of `xi`. Of a `Switching` the last model counts.
    """
    require_instance("config", config, Config)
    cells, nodes = whole_cells(cells), whole_nodes(nodes)
    config = cast(config, jnp.result_type(float))
    q, lam = steady_state(config)
    q0, _ = config.start.moments(config.model.phases()[0].spike)
    q = jnp.where(q0 < 0, -q, q)
    radius = lam * jnp.sqrt(1 - q**2)
    if is_known(radius) and not (np.isfinite(radius) and radius > 0):
        raise ValueError(
            f"rule = {type(config.rule).__name__} comes to q = {float(q)}, lam = "
            f"{float(lam)}, which no density describes: its rate falls to zero or its norm "
            "has no limit. Look at density(config) at late times, rescaled()."
        )
    law = nodes_of(config.model.phases()[-1].spike, nodes)
    centres = q * lam * law.xi
    low, high = jnp.min(centres) - REACH * radius, jnp.max(centres) + REACH * radius
    x = low + (high - low) / cells * (jnp.arange(cells, dtype=lam.dtype) + 0.5)
    pdf = jax.vmap(lambda centre: norm.pdf(x, centre, radius))(centres)
    atoms = jnp.asarray(law.atoms)
    return Density(np.array([np.inf]), x, law.xi, law.weight, pdf[None], atoms)
