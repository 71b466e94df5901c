"""The coupled ODEs of the overlap, the norm and the schedule's memory."""

import warnings

import diffrax
import jax
import numpy as np

from .._check import Checked, is_known, require_instance
from .._config import Config
from .._trajectory import Trajectory
from .initial import first_kick
from .integrate import accurate, in_double, require_options
from .path import Path, follow


def mean_field(
    config: Checked[Config],
    *,
    solver: Checked[diffrax.AbstractSolver | None] = None,
    rtol: Checked[float | None] = None,
    atol: Checked[float | None] = None,
    max_steps: Checked[int] = 4096,
    adjoint: Checked[diffrax.AbstractAdjoint | None] = None,
) -> Trajectory:
    """The limit of `q` and `lam` as p grows: `eq:Q_t`, `eq:lambda_t` and their like.

    Derived from the rule, for any rule and schedule, and differentiable in every leaf
    (in forward mode with `adjoint=diffrax.ForwardMode()`). A cold start has `q = 0` and
    stays there. At a change of the spike, `q` becomes the overlap with the new one, which
    the estimate has by way of those before. Under a `vmap` a solution that failed is
    not `finite`; a single one raises.

    **A start that is forgotten at once** (a warning): with AdaOja's small `b0`, or
    CCIPCA from the first sample, one sample moves the estimate by as much as its own
    length and the limit is singular at t = 0. The curve is then the ODE's path from
    `q0` with the gain of the first samples: its `q` falls within them as a power of
    1/p. A run falls only to the noise's level, `|q|` of order `1/sqrt(p)` and of either
    sign, and so rises earlier than the curve; where both end is the same. With `b0`
    of order p, or `t0 > 0`, the limit is regular.

    The solver's steps are as long as the path allows. Where it is at rest, that is too long
    for the derivative with respect to a single knot of an `Interpolated` schedule: look at
    times as close as the knots, as `tune` does.

    By default `diffrax.Dopri8()` with rtol 1e-10, atol 1e-12 in float64 and 1e-6, 1e-7
    in float32; `max_steps` is for each interval between two times.
    """
    require_instance("config", config, Config)
    require_options(solver, adjoint, rtol, atol, max_steps)
    forgotten = warn_if_forgotten(config)

    def solve(config: Config) -> Path:
        return follow(config, config.ts, accurate(solver, adjoint, rtol, atol, max_steps))

    # The first rates of a start that is forgotten grow with p, and their squares may be
    # beyond float32.
    path = in_double(solve, config) if forgotten else solve(config)
    result = Trajectory(config.ts, path.q, path.lam)
    require_solved(result, max_steps, "solver=diffrax.Kvaerno5(), a larger max_steps")
    return result


def require_solved(result: Trajectory, max_steps: int, options: str) -> None:
    """Refuses a solution that failed, unless it is one of a batch."""
    if is_known(result.q) and not np.all(result.finite):
        failed = int(np.argmin(np.isfinite(result.q) & np.isfinite(result.lam)))
        raise RuntimeError(
            f"The mean field could not be integrated up to t = {result.ts[failed]} in "
            f"{max_steps} steps an interval: the equations are stiff, or the norm is too "
            f"large for the precision. Pass {options}, a smaller tau or shorter ts; where "
            "a warning says that the limit is singular at t = 0, t0 > 0 or a b0 of order p."
        )


def warn_if_forgotten(config: Config) -> bool:
    """Whether the start is forgotten at once, which it also says. (No, where traced.)"""
    if not is_known(*jax.tree.leaves((config.rule, config.model, config.start))):
        return False
    kick = first_kick(config)
    forgotten = not kick <= 1
    if forgotten:
        warnings.warn(
            "The mean field is singular at t = 0: the first sample moves the estimate by "
            f"{np.sqrt(kick):.2g} times its length, and the start is forgotten at once. "
            "The curve falls to q = 0 further than runs at finite p do. A larger b0 (of "
            "order p), t0 > 0 or a larger lam0 makes the limit regular; see `mean_field`.",
            stacklevel=3,
        )
    return forgotten
