"""Predicted error bars: the linear theory of the fluctuations at finite p."""

import warnings
from collections.abc import Callable
from functools import partial

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, PyTree

from .._check import Checked, is_known, require_instance
from .._config import Config, cast
from .._model import SpikedModel
from .._rule import AbstractRule
from .._trajectory import Trajectory
from .._types import Real
from .increments import Slow, drift, noise_of, root
from .initial import Cloud, change, start
from .integrate import Flow, accurate, in_double, require_options
from .limit import FINE
from .mean_field import require_solved, warn_if_forgotten
from .path import windows

_MOST_VARIANCE = 1e16


def fluctuations(
    config: Checked[Config],
    *,
    solver: Checked[diffrax.AbstractSolver | None] = None,
    rtol: Checked[float | None] = None,
    atol: Checked[float | None] = None,
    max_steps: Checked[int] = 4096,
    adjoint: Checked[diffrax.AbstractAdjoint | None] = None,
) -> Trajectory:
    """The mean field with the standard deviations of `q` and `lam` over runs at this `p`.

    One sample changes the slow variables by 1/p times something of mean `F` and
    covariance `D`, both of which follow from the rule; so over runs they have the
    covariance `C/p` with `dC/dt = A C + C A^T + D`, `A` the derivative of `F`, from that
    of the start. In the result `q_std`, `lam_std` and `correlation` say it of the
    overlap and the norm, and `q + q_shift`, `lam + lam_shift` are their means to order
    1/p. A change of the spike is followed, through the chance overlap of the new one.

    It is a linear theory. From `q0 = 0.3`, omega = 1, it is within 3 % of 8,000 chains at
    p = 2,000; of CCIPCA(t0 = 2), whose rate begins at 2.5, it has 8 % too little there on
    the way up, and 2 % at p = 20,000. It falls short where a small overlap grows: from
    `q0 = 0.1` INO-PCA's `q_std` is 4 % short at t = 8 at p = 10,000, at p = 1,000 4 %
    at t = 5 and a third at t = 8, as there some runs start on the other side of 0. From a
    cold start, and where it warns, there is `overlap_law`. Observations are at whole
    samples: at a `t` with `p t` not whole a run is up to 1/p earlier.
    """
    require_instance("config", config, Config)
    require_options(solver, adjoint, rtol, atol, max_steps)
    warn_if_forgotten(config)
    flow = lambda: accurate(solver, adjoint, rtol, atol, max_steps)
    result = in_double(_spread, config, flow)
    result = eqx.tree_at(lambda r: r.ts, result, config.ts)
    require_solved(result, max_steps, "solver=diffrax.Kvaerno5(), a larger max_steps")
    _warn_if_wide(result)
    return result


def _warn_if_wide(result: Trajectory) -> None:
    assert result.q_std is not None
    if is_known(result.q_std) and np.any(np.asarray(result.q_std) > 0.3):
        i = int(np.argmax(np.asarray(result.q_std) > 0.3))
        warnings.warn(
            f"The linear theory has a standard deviation of q of {result.q_std[i]:.2g} at "
            f"t = {result.ts[i]:.4g}, for which an overlap has no room: runs leave q = 0 "
            "each at its own time. Use overlap_law, or simulate.",
            stacklevel=3,
        )


def _spread(config: Config, flow: Callable[[], Flow]) -> Trajectory:
    """Through every phase of the model."""
    config = cast(config, jnp.result_type(float))
    rule, models = config.rule, config.model.phases()
    cloud, seen = start(rule, models[0], config.start), None
    ts = jnp.asarray(config.ts, cloud.shift.dtype)
    for i, window in enumerate(windows(config, ts)):
        cloud = cloud if i == 0 else across(models[i], cloud)
        clouds = carry(rule, models[i], cloud, window.begin, window.inside, flow())
        cloud = jax.tree.map(lambda a: a[-1], clouds)
        clouds = jax.tree.map(lambda a: a[:-1], clouds)
        seen = clouds if seen is None else jax.vmap(chosen)(window.mine, clouds, seen)
    assert seen is not None
    return bars(ts, seen, config.model.float_p)


def chosen(which: Bool[Array, ""], a: PyTree, b: PyTree) -> PyTree:
    """`a` or `b`."""
    return jax.tree.map(partial(jnp.where, which), a, b)


@eqx.filter_jit
def carry(
    rule: AbstractRule, model: SpikedModel, cloud: Cloud, t0: Real, ts: Array, flow: Flow
) -> Cloud:
    """The clouds at the times `ts`, after that at `t0`, in one phase of the model."""
    _, unravel = ravel_pytree(cloud.centre)

    def velocity(t: Real, state: Array) -> Array:
        return ravel_pytree(drift(rule, model, t, unravel(state)))[0]

    def field(t: Real, cloud: Cloud) -> Cloud:
        state, _ = ravel_pytree(cloud.centre)
        along = lambda state: velocity(t, state)
        speed, slope = along(state), jax.jacfwd(along)(state)
        bend = jax.jacfwd(jax.jacfwd(along))(state)
        noise = noise_of(rule, model, t, cloud.centre, FINE)
        # The mean moves as the scatter probes the bend, by the next order of a sample's
        # mean change, and because steps of length 1/p lag behind the flow that they
        # follow: by half of the flow's acceleration.
        _, acceleration = jax.jvp(velocity, (t, state), (jnp.ones_like(t), speed))
        shift = slope @ cloud.shift + noise.next_drift - acceleration / 2
        shift = shift + jnp.einsum("aij,ij->a", bend, cloud.covariance) / 2
        turned = slope @ cloud.covariance
        widen = turned + turned.T + noise.covariance()
        # From a cold start it grows without end: far beyond any sense it is slowed down,
        # lest it overflow.
        variance = cloud.covariance[0, 0] / (cloud.centre.n * model.float_p)
        slow_down = 1 / (1 + (variance / _MOST_VARIANCE) ** 2)
        return Cloud(unravel(speed), slow_down * widen, slow_down * shift)

    def leg(carry, t1: Real):
        t0, cloud = carry
        cloud = flow.between(field, cloud, t0, t1)
        return (t1, cloud), cloud

    return lax.scan(leg, (t0, cloud), ts)[1]


@eqx.filter_jit
def across(model: SpikedModel, cloud: Cloud) -> Cloud:
    """The cloud at the change to `model`, from the one before."""
    state, unravel = ravel_pytree(cloud.centre)
    after = change(model.spike, cloud.centre)
    to_after = lambda state: ravel_pytree(change(model.spike, unravel(state)).centre)[0]
    slope = jax.jacfwd(to_after)(state)
    covariance = slope @ cloud.covariance @ slope.T + after.covariance
    return Cloud(after.centre, covariance, slope @ cloud.shift + after.shift)


@eqx.filter_jit
def bars(ts: Float[Array, " times"], clouds: Cloud, p: float) -> Trajectory:
    """What the clouds at `ts` say of the overlap and the norm."""

    def one(cloud: Cloud) -> dict[str, Array]:
        state, unravel = ravel_pytree(cloud.centre)

        def seen(state: Array) -> Array:
            slow: Slow = unravel(state)
            return jnp.stack([slow.q(), slow.lam()])

        slope, bend = jax.jacfwd(seen)(state), jax.jacfwd(jax.jacfwd(seen))(state)
        covariance = slope @ cloud.covariance @ slope.T / p
        q_std, lam_std = root(jnp.diag(covariance))
        product = q_std * lam_std
        moves = product > 0
        correlation = jnp.where(moves, covariance[0, 1] / jnp.where(moves, product, 1), 0)
        shift = slope @ cloud.shift + jnp.einsum("aij,ij->a", bend, cloud.covariance) / 2
        (q, lam), (q_shift, lam_shift) = seen(state), shift / p
        return dict(
            q=q,
            lam=lam,
            q_std=q_std,
            lam_std=lam_std,
            correlation=correlation,
            q_shift=q_shift,
            lam_shift=lam_shift,
        )

    return Trajectory(ts, **jax.vmap(one)(clouds))
