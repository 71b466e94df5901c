"""The functions `density`, `overlap_path` and `steady_density`: `eq:strong_pde`, its
moments and its steady state."""

import warnings
from typing import Any

import equinox as eqx
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
from .._order_parameters.steady_state import steady_state, terminal_tau
from .._rule import split_penalty
from .._start import NORMAL_SUPPORT
from .._trajectory import Trajectory
from .closed_form import ClosedForm
from .density import Density
from .fokker_planck import FokkerPlanck
from .grid import cell_count, spike_nodes
from .penalised import centred_grid
from .solver import AbstractDensitySolver
from .steady import SteadyBranches, as_problem, density_at, steady_branches


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
      only one; a `Penalised` rule takes `FokkerPlanck` alone.

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
    solver = _required(config, solver, "density")
    with deferred_interrupt():
        return solver.solve(config)


def overlap_path(
    config: Checked[Config], *, solver: Checked[AbstractDensitySolver | None] = None
) -> Trajectory:
    """Returns the overlap and the norm of the density: the limit of `q` and `lam`.

    For a `Penalised` rule, which has no mean field, this is the theory to compare
    simulations with. For other rules it is `mean_field`, up to the error of the solver. It
    is differentiable with respect to every leaf of the config but its times.

    **Arguments:**

    - `config`, `solver`: as those of `density`.

    **Returns:**

    A `Trajectory` with arrays of shape (times,).

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> rule = ino.Penalised(ino.InoPCA(tau=0.5), ino.SoftThreshold(beta=0.3))
    >>> model = ino.SpikedModel(omega=1.0, spike=ino.Sparse(rho=0.05))
    >>> config = ino.Config(rule, model, ino.WarmStart(q0=0.5), ts=[0.0, 20.0])
    >>> path = ino.overlap_path(config)
    >>> round(float(path.q[-1]), 2), round(float(path.lam[-1]), 2)
    (0.94, 1.86)
    ```
    """
    solver = _required(config, solver, "overlap_path")
    with deferred_interrupt():
        found = solver.solve(config)
    return Trajectory(config.ts, found.q, found.lam)


def _required(config: Checked[Config], solver: Any, user: str) -> AbstractDensitySolver:
    """Refuses bad arguments, and returns the solver."""
    require_instance("config", config, Config)
    require_single(config, user, takes_penalty=True)
    if solver is None:
        turns = any(model.turning is not None for model in config.model.phases())
        solver = ClosedForm() if turns else FokkerPlanck()
    require_instance("solver", solver, AbstractDensitySolver)
    return solver


def steady_density(
    config: Checked[Config], *, cells: Checked[int] = 400, nodes: Checked[int] = 32
) -> Density:
    """Returns the density in the limit of long times, `eq:steady_state_dist`.

    It is `N(q_s lam_s xi, lam_s^2 (1 - q_s^2))`. Below the transition `q_s = 0`. Above it
    `q_s` has the sign of the start's overlap, and is positive if that is zero. The entries
    of a spike that turns become standard normal, whatever they were.

    Of a `Penalised` rule it is the self-consistent density
    `exp{[along xi x + back x^2/2 - Phi(x)]/diffusivity}`, up to a factor. There may be
    several (`steady_branches`): the one that the start leads to is found by solving for the
    density over a long time.

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
    require_single(config, "steady_density", takes_penalty=True)
    cells, nodes = cell_count(cells), node_count(nodes)
    if split_penalty(config.rule)[1] is not None:
        return _penalised_steady_density(config, cells, nodes)
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


# How long a density is followed, in units of the inverse rate, and the largest distance
# from a steady overlap that counts as an arrival.
_FOLLOWED, _ARRIVED = 200.0, 0.03


def _penalised_steady_density(config: Config, cells: int, nodes: int) -> Density:
    """Returns the steady density of a penalised rule to which the start leads."""
    branches = steady_branches(config, nodes=nodes)
    q = _stable_overlap(config, branches, nodes)
    dtype = jnp.result_type(float)
    with jax.enable_x64(True):
        problem = as_problem(config, nodes)
        state, _ = density_at(problem, abs(q))
        ends = jnp.min(state.low), jnp.max(state.high)
        grid = centred_grid(cells, ends, (problem.nodes,))
        _, pdf = density_at(problem, abs(q), grid.x)
        assert pdf is not None
        x = grid.x
    if q < 0:
        x, pdf = -x[::-1], pdf[:, ::-1]
    law = problem.nodes
    xi, weights, x, pdf = (a.astype(dtype) for a in (law.xi, law.weights, x, pdf))
    return Density(np.array([np.inf]), x, xi, weights, pdf[None], jnp.asarray(law.atoms))


def _stable_overlap(config: Config, branches: SteadyBranches, nodes: int) -> float:
    """Returns the overlap of the stable branch that the start leads to, with its sign."""
    stable = np.asarray(branches.q)[np.asarray(branches.stable)]
    if not stable.size:
        raise ValueError(
            f"rule = {config.rule!r} has no stable steady state at omega = "
            f"{float(config.model.phases()[-1].omega):.4g}: the penalty is so strong that "
            "the tails of the density run away. Lower it."
        )
    tau = terminal_tau(config.rule, config.model.phases()[-1].omega)
    time = _FOLLOWED / (0.5 if tau is None else float(tau))
    ts = np.append(0.0, config.model.changes())[-1:] + time
    solver = FokkerPlanck(cells=256, nodes=nodes, dt=time / 2000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # only the branch counts
        end = solver.solve(eqx.tree_at(lambda c: c.ts, config, ts)).q[-1]
    distance = np.abs(stable - abs(float(end)))
    if not distance.min() < _ARRIVED:
        warnings.warn(
            f"After the time {time:.4g} the overlap is {float(end):.3g}, and has not yet "
            f"settled at any of the stable steady overlaps {stable.round(3).tolist()}: the "
            "closest is returned. Begin farther from an unstable one (steady_branches).",
            stacklevel=4,
        )
    return float(np.copysign(stable[np.argmin(distance)], end))
