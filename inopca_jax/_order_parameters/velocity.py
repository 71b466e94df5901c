"""The right-hand side of the mean-field equations."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from .._check import Checked, require, require_instance
from .._config import Config, require_single, rule_of_one
from .._model import SpikedModel
from .._numerics import cast, off_host
from .._rule import initial_state
from .._timeline import segments
from .._types import Real
from .bounds import broadcastable
from .limit import velocity as _velocity_of_rule


def velocity(
    config: Checked[Config],
    q: Checked[ArrayLike],
    lam: Checked[ArrayLike],
    t: Checked[ArrayLike] = 0.0,
) -> tuple[Float[Array, "*n"], Float[Array, "*n"]]:
    """Returns `dq/dt` and `dlam/dt` of the mean field at the given states.

    For INO-PCA these are the right-hand sides of `eq:Q_t` and `eq:lambda_t`. The arguments
    are broadcast against each other. Of a schedule with a state, such as `AdaGrad`, the
    initial state is used.

    **Arguments:**

    - `config`: the rule and the model; its start and its times are not used.
    - `q`: overlaps, in [-1, 1], with the spike in force at `t`.
    - `lam`: norms, positive. A rule that projects has `lam = 1`.
    - `t`: times, which matter to a schedule that depends on time, and to a model that
      switches between spikes.

    **Returns:**

    The pair `(dq_dt, dlam_dt)`, of the arguments' common shape.

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> dq_dt, dlam_dt = ino.velocity(ino.Config(), q=[0.0, 0.5], lam=1.0)
    >>> [round(float(speed), 3) for speed in dq_dt]
    [0.0, 0.109]
    ```
    """
    require_instance("config", config, Config)
    require_single(config, "velocity")
    require("q", q, lambda x: np.abs(x) <= 1, "an overlap lies in [-1, 1]")
    require("lam", lam, lambda x: np.isfinite(x) & (x > 0), "a norm is positive")
    require("t", t, lambda x: np.isfinite(x) & (x >= 0), "times start at 0")
    return _velocities(off_host(config), *broadcastable(q=q, lam=lam, t=t))


@eqx.filter_jit
def _velocities(config: Config, q: Array, lam: Array, t: Array) -> tuple[Array, Array]:
    config = cast(config, jnp.result_type(float))
    rule, p = rule_of_one(config), config.model.p
    q, lam, t = jnp.broadcast_arrays(q, lam, t)
    omega = omegas_at(config, t.ravel())

    def at_state(omega: Real, q: Real, lam: Real, t: Real) -> tuple[Real, Real]:
        return _velocity_of_rule(rule, omega, p, t, q, lam, initial_state(rule, p))[:2]

    dq, dlam = jax.vmap(at_state)(omega, q.ravel(), lam.ravel(), t.ravel())
    dq, dlam = dq.reshape(q.shape), dlam.reshape(q.shape)
    if any(model.turning is not None for model in config.model.phases()):
        dq = dq - turnings_at(config, t.ravel()).reshape(q.shape) * q
    return dq, dlam


def omegas_at(config: Config, ts: Float[Array, " times"]) -> Float[Array, " times"]:
    """Returns the signal-to-noise ratio in force at each of the times, in any order."""
    return _in_force(config, ts, lambda model: model.effective_omega)


def turnings_at(config: Config, ts: Float[Array, " times"]) -> Float[Array, " times"]:
    """Returns the rate at which the spike turns at each of the times, in any order."""
    return _in_force(config, ts, lambda m: 0.0 if m.turning is None else m.turning)


def _in_force(
    config: Config, ts: Float[Array, " times"], number: Callable[[SpikedModel], Any]
) -> Float[Array, " times"]:
    values = jnp.zeros_like(ts)
    for model, segment in zip(config.model.phases(), segments(config, ts), strict=True):
        values = jnp.where(segment.observed, number(model), values)
    return values
