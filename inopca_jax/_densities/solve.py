"""The functions `density` and `steady_density`: `eq:strong_pde` and its steady state."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm

from .._check import Checked, is_known, require_instance
from .._config import Config, require_single
from .._interrupt import deferred_interrupt
from .._model import Gaussian
from .._model.spike import node_count
from .._numerics import cast
from .._order_parameters.steady_state import steady_state
from .._start import NORMAL_SUPPORT
from .closed_form import ClosedForm
from .density import Density
from .fokker_planck import FokkerPlanck
from .grid import cell_count, spike_nodes
from .solver import AbstractDensitySolver


def density(
    config: Checked[Config], *, solver: Checked[AbstractDensitySolver | None] = None
) -> Density:
    """Returns the limit of the empirical law of the entries `(x_i, xi_i)` as p grows.

    It is differentiable with respect to every leaf of the config but its times.

    **Arguments:**

    - `config`: any rule, schedule, start and model; the density is computed at `config.ts`.
    - `solver`: `FokkerPlanck()`, the default, solves the partial differential equation,
      `ClosedForm()` evaluates the exact solution, and `MethodOfLines()` solves the
      equation with diffrax. Of a spike that turns, `ClosedForm()` is the default and the
      only one.

    **Returns:**

    A `Density`.

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> config = ino.Config(start=ino.WarmStart(q0=0.3), ts=[0.0, 10.0])
    >>> pdf = ino.density(config)
    >>> pdf.marginal().shape
    (2, 400)
    ```
    """
    require_instance("config", config, Config)
    require_single(config, "density")
    if solver is None:
        turns = any(model.turning is not None for model in config.model.phases())
        solver = ClosedForm() if turns else FokkerPlanck()
    require_instance("solver", solver, AbstractDensitySolver)
    with deferred_interrupt():
        return solver.solve(config)


def steady_density(
    config: Checked[Config], *, cells: Checked[int] = 400, nodes: Checked[int] = 32
) -> Density:
    """Returns the density in the limit of long times, `eq:steady_state_dist`.

    It is `N(q_s lam_s xi, lam_s^2 (1 - q_s^2))`. Below the transition `q_s = 0`. Above it
    `q_s` has the sign of the start's overlap, and is positive if that is zero. The entries
    of a spike that turns become standard normal, whatever they were.

    **Arguments:**

    - `config`: of a `Switching` model, the last one counts; the times are ignored.
    - `cells`: the number of points `x`, at least 16.
    - `nodes`: the number of nodes of the quadrature over the spike's entry.

    **Returns:**

    A `Density` at one time, which is infinity.

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> pdf = ino.steady_density(ino.Config(rule=ino.InoPCA(tau=0.5)))
    >>> round(float(pdf.q[0]), 3)
    0.882
    ```
    """
    require_instance("config", config, Config)
    require_single(config, "steady_density")
    cells, nodes = cell_count(cells), node_count(nodes)
    config = cast(config, jnp.result_type(float))
    q, lam = steady_state(config)
    q0, _ = config.start.moments(config.model.phases()[0].spike)
    q = jnp.where(q0 < 0, -q, q)
    std = lam * jnp.sqrt(1 - q**2)
    if is_known(std) and not (np.isfinite(std) and std > 0):
        raise ValueError(
            f"rule = {type(config.rule).__name__} has the steady state q = {float(q)}, "
            f"lam = {float(lam)}, which has no density: its learning rate falls to zero, "
            "or its norm has no limit. Use density(config) at late times, and rescaled()."
        )
    model = config.model.phases()[-1]
    spike = model.spike if model.turning is None else Gaussian()
    law = spike_nodes(spike, nodes)
    means = q * lam * law.xi
    low = jnp.min(means) - NORMAL_SUPPORT * std
    high = jnp.max(means) + NORMAL_SUPPORT * std
    x = low + (high - low) / cells * (jnp.arange(cells, dtype=lam.dtype) + 0.5)
    pdf = jax.vmap(lambda mean: norm.pdf(x, mean, std))(means)
    atoms = jnp.asarray(law.atoms)
    return Density(np.array([np.inf]), x, law.xi, law.weights, pdf[None], atoms)
