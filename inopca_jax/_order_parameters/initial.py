"""The law of the order parameters at the start and after a switch, at finite p."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from .._config import Config
from .._model import AbstractSpike, SpikedModel
from .._numerics import cast, derivatives, off_host
from .._rule import (
    AbstractAlgorithm,
    AbstractRule,
    AbstractSubspaceRule,
    initial_state,
)
from .._start import AbstractStart, FirstSamples
from .._types import Real
from .increments import OrderParameters
from .limit import limit_coefficients
from .subspace_field import mean_square_step


class GaussianApproximation(eqx.Module):
    """A normal law of the order parameters, to leading orders in 1/p.

    Over runs they have the mean `mean + shift/p` and the covariance `covariance/p`.

    **Arguments:**

    - `mean`: the limit of the order parameters as p grows.
    - `covariance`, `shift`: in the order of the raveled order parameters.
    """

    mean: OrderParameters
    covariance: Float[Array, "state state"]
    shift: Float[Array, " state"]


def start_moments(
    rule: AbstractAlgorithm, model: SpikedModel, start: AbstractStart
) -> tuple[Array, Array]:
    """Returns `(q0, lam0)`. A rule that projects does so before the first sample too."""
    q0, lam0 = start.moments(model.spike)
    lam0 = jnp.ones_like(lam0) if rule.projects else lam0
    return q0.astype(model.omega.dtype), lam0.astype(model.omega.dtype)


def first_step_size(config: Config) -> float:
    """Returns the mean square of the first step, over `|x|^2`: small in a regular limit."""
    # In double precision, as the square of a first rate of p/b0 may be beyond float32.
    with jax.enable_x64(True):
        return float(_first_step_size(off_host(config)))


@eqx.filter_jit
def _first_step_size(config: Config) -> Real:
    config = cast(config, jnp.result_type(float))
    rule, model = config.rule, config.model.phases()[0]
    q0, lam0 = start_moments(rule, model, config.start)
    p = jnp.asarray(model.p)
    if isinstance(rule, AbstractSubspaceRule):
        lams = jnp.broadcast_to(lam0, (config.components,))
        return mean_square_step(rule, p, lams) / p
    assert isinstance(rule, AbstractRule)
    state = initial_state(rule, p)
    if not config.is_single:
        # The component that moves the most; overlaps change this by a factor of order 1.
        zero = jnp.zeros((), lam0.dtype)
        step = lambda lam0: limit_coefficients(rule, zero, p, 1 / p, zero, lam0, state).a2
        return jnp.max(jax.vmap(step)(lam0.reshape(-1))) / p
    return limit_coefficients(rule, model.effective_omega, p, 1 / p, q0, lam0, state).a2 / p


@eqx.filter_jit
def start_law(
    rule: AbstractRule, model: SpikedModel, start: AbstractStart
) -> GaussianApproximation:
    """Returns the law at time 0.

    The order parameters are functions of averages over the entries `(x, eta)`, where the
    spike is `xi = eta/sigma`, brought to its length by `sigma`, and `x` is drawn given
    `xi`. So their law is normal, by the delta method, including what `x` inherits from
    `sigma`.
    """
    _, lam0 = start_moments(rule, model, start)
    eta, w = (a.astype(lam0.dtype) for a in model.spike.quadrature(32))

    def averages(sigma: Real, w: Array = w) -> Float[Array, "3"]:
        """Returns the averages of `(x eta, x^2, x)`, with the weights `w`."""
        x1, x2 = (
            start.conditional_moment(eta / sigma, k).astype(eta.dtype) for k in (1, 2)
        )
        return jnp.stack([x1 * eta, x2, x1]) @ w

    one = jnp.ones_like(lam0)
    plain = averages(one)

    def observed(means: Float[Array, "5"]) -> Float[Array, "3"]:
        """Returns `(m, mean_entry, spike_mean)`."""
        sigma = jnp.sqrt(means[4])
        product, square, entry = means[:3] + averages(sigma) - plain
        size = lam0 / jnp.sqrt(square)
        return jnp.stack([product * size / sigma, entry * size, means[3] / sigma])

    # E[x^a eta^b] for all powers up to 4, and those of x and eta in the five averages.
    moments = [start.conditional_moment(eta, k).astype(eta.dtype) for k in range(5)]
    powers = jnp.stack([w * eta**k for k in range(5)], axis=1)
    moments = jnp.stack(moments) @ powers
    a, b = np.array([(1, 1), (2, 0), (1, 0), (0, 1), (0, 2)]).T
    mean, second = moments[a, b], moments[a[:, None] + a, b[:, None] + b]
    covariance = second - jnp.outer(mean, mean)
    value, slope, shift = _delta_method(observed, mean, covariance)
    # The averages themselves depend on `sigma`, which scatters with the entries.
    by_sigma = jax.jacfwd(lambda sigma: averages(sigma, w * (eta**2 - 1)))(one)
    shift = shift + slope[:, :3] @ by_sigma / 2
    limit = OrderParameters(
        value[0], value[1], lam0**2, initial_state(rule, model.p), value[2]
    )
    embedded = _embed(limit, slope @ covariance @ slope.T, shift)
    law = GaussianApproximation(limit, *embedded)
    return _with_signal(law, rule, model) if isinstance(start, FirstSamples) else law


def _with_signal(
    law: GaussianApproximation, rule: AbstractRule, model: SpikedModel
) -> GaussianApproximation:
    """Returns the law of a start that is a sample and not only noise.

    The sample's signal `sqrt(omega/p) c xi` adds to the overlap and to the mean entry, and
    the squared length is that of the sample, chi-square distributed.
    """
    direction = jnp.zeros_like(law.shift).at[0].set(1).at[1].set(law.mean.spike_mean)
    covariance = law.covariance + model.omega * jnp.outer(direction, direction)
    if rule.projects:
        return GaussianApproximation(law.mean, covariance, law.shift)
    covariance, shift = covariance.at[2, 2].add(2), law.shift.at[2].add(model.omega)
    return GaussianApproximation(law.mean, covariance, shift)


def switch_law(spike: AbstractSpike, before: OrderParameters) -> GaussianApproximation:
    """Returns the law after a switch to a new spike, given the order parameters before.

    The estimate stays. Its overlap with the new spike is random, because the entries of
    that are independent of it.
    """
    dtype = before.n.dtype
    eta, w = (a.astype(dtype) for a in spike.quadrature(32))
    mu, third, fourth = (jnp.sum(w * eta**k) for k in (1, 3, 4))
    one, skew, c = jnp.ones_like(mu), third - mu, before.mean_entry
    mean = jnp.stack([mu * c, mu, one])  # of x eta, eta, eta^2
    var = one - mu**2
    covariance = jnp.stack(
        [
            jnp.stack([before.n * var, c * var, c * skew]),
            jnp.stack([c * var, var, skew]),
            jnp.stack([c * skew, skew, fourth - one]),
        ]
    )
    value, slope, shift = _delta_method(lambda a: a[:2] / jnp.sqrt(a[2]), mean, covariance)
    limit = eqx.tree_at(lambda s: (s.m, s.spike_mean), before, (value[0], value[1]))
    # The mean entry of the estimate does not change, and gets no scatter.
    spread = jnp.zeros((3, 3), dtype)
    index = jnp.array([0, 2])
    spread = spread.at[index[:, None], index].set(slope @ covariance @ slope.T)
    shift = jnp.zeros(3, dtype).at[index].set(shift)
    return GaussianApproximation(limit, *_embed(limit, spread, shift))


def _delta_method(f: Callable[[Array], Array], mean: Array, covariance: Array):
    """Returns the value of `f`, its slope, and `p` times the second order of its mean."""
    value, slope, curvature = derivatives(f, mean)
    return value, slope, jnp.einsum("aij,ij->a", curvature, covariance) / 2


def _embed(limit: OrderParameters, spread: Array, shift: Array) -> tuple[Array, Array]:
    """Returns the covariance and the shift of `(m, mean_entry, spike_mean)` in the order of
    raveled `OrderParameters`, with zeros for the others."""
    size = ravel_pytree(limit)[0].size
    index = jnp.array([0, 1, size - 1])
    covariance = jnp.zeros((size, size), spread.dtype)
    covariance = covariance.at[index[:, None], index].set(spread)
    return covariance, jnp.zeros(size, shift.dtype).at[index].set(shift)
