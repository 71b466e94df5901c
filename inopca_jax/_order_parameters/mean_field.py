"""The mean field: the coupled ODEs of the overlap, the norm and the schedule's state.

The equations are in `limit.py`, the process that integrates them in `path.py`.
"""

import warnings

import diffrax
import jax
import numpy as np

from .._check import Checked, is_known, require_instance
from .._components import SeveralComponents
from .._config import Config, require_plain_schedule
from .._numerics import off_host
from .._rule import AbstractSubspaceRule, require_rates
from .._trajectory import AbstractTrajectory, Trajectory
from .component_field import component_mean_field
from .initial import first_step_size
from .integrate import in_double, make_integrator, require_options
from .path import Path, follow


def mean_field(
    config: Checked[Config],
    *,
    solver: Checked[diffrax.AbstractSolver | None] = None,
    rtol: Checked[float | None] = None,
    atol: Checked[float | None] = None,
    max_steps: Checked[int] = 4096,
    adjoint: Checked[diffrax.AbstractAdjoint | None] = None,
) -> Trajectory | SeveralComponents:
    """Returns the limit of `q` and `lam` as p grows: `eq:Q_t`, `eq:lambda_t` for INO-PCA.

    It is derived from the rule, for any rule and schedule, and differentiable in every leaf
    of the config. From a cold start `q` is 0 and stays 0. At a switch `q` becomes the
    overlap with the new spike, which is not 0 if both spikes have a mean.

    With several spikes or components it is the limit of the overlaps, the norms and the
    cosines: a matrix ODE. A rule whose gain reads the sample's component along the estimate
    is refused, as its equations do not close, and so are switches between spikes whose
    entries have a mean. The same holds for a rule that acts on all components at once, also
    of one component. A schedule that keeps a vector, such as `SelfTuning`, is refused.

    **A start that is forgotten at once** (a warning): with AdaOja's small `b0`, or with
    CCIPCA from the first sample on, one sample moves the estimate by as much as its own
    length, and the limit is singular at t = 0. The curve is then the solution of the ODE
    from `q0` with the gain of the first samples, in which `q` falls as a power of 1/p. A
    run falls only to `|q|` of order `1/sqrt(p)`, of either sign, and rises earlier than the
    curve; both end at the same overlap. With `b0` of order p, or `t0 > 0`, the limit is
    regular.

    **Derivatives with respect to a knot of an `Interpolated` schedule**: the solver's steps
    are as long as the path allows, which near the steady state is too long to resolve a
    single knot. Observe at times as close as the knots, as `tune` does.

    **Arguments:**

    - `config`: what to run.
    - `solver`: a solver of diffrax's, by default `diffrax.Dopri8()`.
    - `rtol`, `atol`: its tolerances, by default 1e-10 and 1e-12 in float64, 1e-6 and 1e-7
      in float32.
    - `max_steps`: the most steps between two times.
    - `adjoint`: how derivatives are taken; by default in reverse mode,
      `diffrax.ForwardMode()` for forward mode.

    **Returns:**

    A `Trajectory` with arrays of shape (times,), or a `ComponentTrajectory` if there are
    several spikes or components. A solution that fails raises a `RuntimeError`; under a
    `vmap` it is not `finite`.

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> config = ino.Config(start=ino.WarmStart(q0=0.3), ts=[0.0, 10.0, 50.0])
    >>> path = ino.mean_field(config)
    >>> [round(float(q), 2) for q in path.q]
    [0.3, 0.86, 0.88]
    ```
    """
    require_instance("config", config, Config)
    require_plain_schedule(config.rule, "mean_field")
    require_rates(config.rule, "mean_field")
    require_options(solver, adjoint, rtol, atol, max_steps)
    is_forgotten = warn_if_forgotten(config)

    acts_on_all = isinstance(config.rule, AbstractSubspaceRule)
    if acts_on_all or not config.is_single:
        options = (solver, adjoint, rtol, atol, max_steps)
        path = component_mean_field(config, options, in_float64=is_forgotten)
        if not config.is_single:
            return path
        return Trajectory(config.ts, path.overlaps[:, 0, 0], path.norms[:, 0])

    def solve(config: Config) -> Path:
        integrator = make_integrator(solver, adjoint, rtol, atol, max_steps)
        config = off_host(config)
        return follow(config, config.ts, integrator)

    # The first rates of a start that is forgotten grow with p, and their squares may be
    # beyond float32.
    path = in_double(solve, config) if is_forgotten else solve(config)
    result = Trajectory(config.ts, path.q, path.lam)
    require_solved(result, max_steps, "solver=diffrax.Kvaerno5(), a larger max_steps")
    return result


def require_solved(result: AbstractTrajectory, max_steps: int, options: str) -> None:
    """Refuses a solution that failed, unless it is one of a batch."""
    if not is_known(result.q):
        return
    finite = np.isfinite(np.asarray(result.q) + np.asarray(result.lam))
    if not finite.all():
        failed = int(np.argmin(finite))
        raise RuntimeError(
            f"The mean field could not be integrated up to t = {result.ts[failed]} in "
            f"{max_steps} steps an interval: the equations are stiff, or the norm is too "
            f"large for the precision. Pass {options}, a smaller tau or shorter ts; where "
            "a warning says that the limit is singular at t = 0, t0 > 0 or a b0 of order p."
        )


def warn_if_forgotten(config: Config) -> bool:
    """Warns if the start is forgotten at once, and returns whether it is.

    Nothing is known of a traced config: it returns False.
    """
    if not is_known(*jax.tree.leaves((config.rule, config.model, config.start))):
        return False
    step_size = first_step_size(config)
    is_forgotten = not step_size <= 1
    if is_forgotten:
        warnings.warn(
            "The mean field is singular at t = 0: the first sample moves the estimate by "
            f"{np.sqrt(step_size):.2g} times its length, and the start is forgotten at "
            "once. The curve falls closer to q = 0 than runs at finite p do. A larger b0 "
            "(of order p), t0 > 0 or a larger lam0 makes the limit regular; see "
            "`mean_field`.",
            stacklevel=3,
        )
    return is_forgotten
