"""The coupled ODEs of the overlap, the norm and the schedule's memory."""

import warnings
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.flatten_util import ravel_pytree
from jaxtyping import PyTree

from .._check import is_known
from .._config import Config, cast
from .._engine.base import start_norm
from .._trajectory import Trajectory
from .._types import Real
from .limit import limit


def mean_field(
    config: Config,
    *,
    solver: diffrax.AbstractSolver | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    max_steps: int = 4096,
    adjoint: diffrax.AbstractAdjoint | None = None,
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

    By default `diffrax.Dopri8()` with rtol 1e-10, atol 1e-12 in float64 and 1e-6, 1e-7
    in float32; `max_steps` is for each interval between two times.
    """
    _warn_if_forgotten(config)
    wide = jnp.result_type(float) == jnp.float64
    method = _Method(
        diffrax.Dopri8() if solver is None else solver,
        diffrax.RecursiveCheckpointAdjoint() if adjoint is None else adjoint,
        (1e-10 if wide else 1e-6) if rtol is None else rtol,
        (1e-12 if wide else 1e-7) if atol is None else atol,
        max_steps,
    )
    result = _integrate(config, method)
    if is_known(result.q) and not np.all(result.finite):
        failed = int(np.argmin(np.isfinite(result.q) & np.isfinite(result.lam)))
        raise RuntimeError(
            f"The mean field could not be integrated up to t = {config.ts[failed]} in "
            f"{max_steps} steps an interval: the equations are stiff, or the norm is too "
            "large for the precision. Pass solver=diffrax.Kvaerno5(), a larger max_steps, "
            "a smaller tau or shorter ts."
        )
    return eqx.tree_at(lambda run: run.ts, result, config.ts)


class _Method(eqx.Module):
    """How to solve an initial value problem."""

    solver: diffrax.AbstractSolver
    adjoint: diffrax.AbstractAdjoint
    rtol: float = eqx.field(static=True)
    atol: float = eqx.field(static=True)
    max_steps: int = eqx.field(static=True)

    def flow(self, field, state: PyTree, t0: Real, t1: Real) -> PyTree:
        """The state at `t1`, not a number if the solver fails.

        An interval at a time, so that each value is the end of a step: interpolating
        inside a high-order step would cost more accuracy than the steps themselves. It
        also keeps host callbacks out of the program, which exports for any backend.
        """
        # One vector, because diffrax's loops trip over a memory that has no leaves; and
        # on [0, 1], so that an interval of no length is an interval like any other.
        vector, unravel = ravel_pytree(state)
        length = t1 - t0

        def scaled(s, vector, _):
            return length * ravel_pytree(field(t0 + s * length, unravel(vector)))[0]

        solution = diffrax.diffeqsolve(
            diffrax.ODETerm(scaled),  # pyright: ignore
            self.solver,
            0.0,
            1.0,
            1.0,  # the controller cuts it down where that is too bold
            vector,
            saveat=diffrax.SaveAt(t1=True),
            stepsize_controller=diffrax.PIDController(rtol=self.rtol, atol=self.atol),
            max_steps=self.max_steps,
            throw=False,
            adjoint=self.adjoint,
        )
        # A failed solve returns plausible numbers: they must not pass for the solution.
        good = solution.result == diffrax.RESULTS.successful
        assert solution.ys is not None
        return unravel(jnp.where(good, solution.ys[0], jnp.nan))


@eqx.filter_jit
def _integrate(config: Config, method: _Method) -> Trajectory:
    config = cast(config, jnp.result_type(float))
    rule, models = config.rule, config.model.phases()
    q0, _ = config.start.mixture()
    lam0 = start_norm(rule, config.start)
    ts = jnp.asarray(config.ts, lam0.dtype)
    # The overlaps with all spikes, of this phase and the later ones: x remembers those
    # before, and they may resemble those to come. Two spikes overlap by their means.
    means = jnp.stack([model.spike.mean().astype(ts.dtype) for model in models])
    overlaps = jnp.where(jnp.eye(len(models), dtype=bool), 1, jnp.outer(means, means))
    state = (q0 * overlaps[0], lam0, rule.tau.init(config.model.p))

    changes = [jnp.asarray(t, ts.dtype) for t in config.model.changes()]
    begins = [jnp.zeros((), ts.dtype), *changes]
    q, lam = jnp.zeros_like(ts), jnp.zeros_like(ts)
    for i, model in enumerate(models):
        # A phase passes over all of the times, held within it, and what it saw outside
        # is thrown away: the shapes stay static when the times are traced.
        end = ts[-1] if i + 1 == len(models) else begins[i + 1]
        end = jnp.where(end < begins[i], begins[i], end)
        # Not `clip`, which halves the derivative of a time at the phase's own edge.
        within = jnp.where(ts < begins[i], begins[i], jnp.where(ts > end, end, ts))
        within = jnp.append(within, end)

        def field(t, state, i=i, model=model):
            qs, lam, memory = state
            a = limit(rule, model.omega, model.p, t, qs[i], lam, memory)
            return (
                a.turn(model.omega, qs[i], qs, overlaps[i]),
                a.stretch(rule, lam),
                a.drift,
            )

        def leg(carry, t1: Real, field=field):
            t0, state = carry
            state = method.flow(field, state, t0, t1)
            return (t1, state), state

        (_, state), (qs, lams, _) = lax.scan(leg, (begins[i], state), within)
        # As forgiving of rounding as the steps of a simulation are.
        mine = ts >= begins[i] * (1 - 4 * jnp.finfo(ts.dtype).eps)
        q, lam = jnp.where(mine, qs[:-1, i], q), jnp.where(mine, lams[:-1], lam)
    return Trajectory(config.ts, q, lam)


def _warn_if_forgotten(config: Config) -> None:
    if not is_known(*jax.tree.leaves((config.rule, config.model, config.start))):
        return
    kick: Any = first_kick(config)
    if not kick <= 1:
        warnings.warn(
            "The mean field is singular at t = 0: the first sample moves the estimate by "
            f"{np.sqrt(kick):.2g} times its length, and the start is forgotten at once. "
            "The curve falls to q = 0 further than runs at finite p do. A larger b0 (of "
            "order p), t0 > 0 or a larger lam0 makes the limit regular; see `mean_field`.",
            stacklevel=3,
        )


@eqx.filter_jit
def first_kick(config: Config) -> Real:
    """The mean square of the first step, over `|x|^2`: small in a regular limit."""
    config = cast(config, jnp.result_type(float))
    model = config.model.phases()[0]
    lam0, p = start_norm(config.rule, config.start), config.model.p
    q0, _ = config.start.mixture()
    first = jnp.asarray(1 / p, lam0.dtype)
    memory = config.rule.tau.init(p)
    return limit(config.rule, model.omega, p, first, q0, lam0, memory).a2 / p
