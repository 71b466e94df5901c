"""Where the slow variables begin, and begin again at a change of the spike, at finite p."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from .._config import Config, cast
from .._model import AbstractSpike, SpikedModel
from .._rule import AbstractRule
from .._start import AbstractStart
from .._types import Real
from .increments import Slow
from .limit import limit


class Cloud(eqx.Module):
    """The law of the slow variables to leading orders in 1/p: about `centre`, a normal
    one of covariance `covariance/p`, displaced by `shift/p`."""

    centre: Slow
    covariance: Float[Array, "state state"]
    shift: Float[Array, " state"]


def start_moments(
    rule: AbstractRule, model: SpikedModel, start: AbstractStart
) -> tuple[Real, Real]:
    """`(q0, lam0)`; a rule that projects does so before the first sample too."""
    q0, lam0 = start.moments(model.spike)
    lam0 = jnp.ones_like(lam0) if rule.projects else lam0
    return q0.astype(model.omega.dtype), lam0.astype(model.omega.dtype)


def first_kick(config: Config) -> float:
    """The mean square of the first step, over `|x|^2`: small in a regular limit."""
    # In double precision, as the square of a first rate of p/b0 may be beyond float32.
    with jax.enable_x64(True):
        return float(_first_kick(config))


@eqx.filter_jit
def _first_kick(config: Config) -> Real:
    config = cast(config, jnp.result_type(float))
    model = config.model.phases()[0]
    q0, lam0 = start_moments(config.rule, model, config.start)
    p = config.model.float_p
    first = jnp.asarray(1 / p, lam0.dtype)
    memory = config.rule.tau.init(p)
    return limit(config.rule, model.omega, p, first, q0, lam0, memory).a2 / p


@eqx.filter_jit
def start(rule: AbstractRule, model: SpikedModel, begin: AbstractStart) -> Cloud:
    """The law at time 0.

    All is a function of averages over the entries `(x, eta)`, with `xi = eta/sigma`
    brought to its length by `sigma`, and `x` drawn given `xi`. So it is normal, by the
    delta method, with what `x` owes to `sigma` taken along.
    """
    _, lam0 = start_moments(rule, model, begin)
    eta, w = (a.astype(lam0.dtype) for a in model.spike.quadrature(32))

    def averages(sigma: Real, power: int = 0) -> Float[Array, "3"]:
        """`E[eta^power (x eta, x^2, x)]`."""
        x1, x2 = (begin.given(eta / sigma, k).astype(eta.dtype) for k in (1, 2))
        return jnp.stack([jnp.sum(w * eta**power * f) for f in (x1 * eta, x2, x1)])

    one = jnp.ones_like(lam0)
    plain = averages(one)

    def observed(means: Float[Array, "5"]) -> Float[Array, "3"]:
        """`(m, c, rho)`."""
        sigma = jnp.sqrt(means[4])
        product, square, entry = means[:3] + averages(sigma) - plain
        size = lam0 / jnp.sqrt(square)
        return jnp.stack([product * size / sigma, entry * size, means[3] / sigma])

    moments = [begin.given(eta, k).astype(eta.dtype) for k in range(5)]
    kinds = ((1, 1), (2, 0), (1, 0), (0, 1), (0, 2))  # powers of x, eta in the averages
    mean = jnp.stack([jnp.sum(w * moments[a] * eta**b) for a, b in kinds])
    second = [
        [jnp.sum(w * moments[a + i] * eta ** (b + j)) for i, j in kinds] for a, b in kinds
    ]
    covariance = jnp.stack([jnp.stack(row) for row in second]) - jnp.outer(mean, mean)
    value, slope, shift = _delta(observed, mean, covariance)
    # And how `sigma` goes with the slope of the averages in it.
    by_sigma = lambda power: jax.jacfwd(lambda sigma: averages(sigma, power))(one)
    shift = shift + slope[:, :3] @ (by_sigma(2) - by_sigma(0)) / 2
    centre = Slow(value[0], value[1], lam0**2, rule.tau.init(model.float_p), value[2])
    return Cloud(centre, *_embedded(centre, slope @ covariance @ slope.T, shift))


def change(spike: AbstractSpike, slow: Slow) -> Cloud:
    """The law at a change to a new `spike`, given the slow variables before it: `x` stays,
    and its overlap with a vector that is independent of it is anybody's guess."""
    dtype = slow.n.dtype
    eta, w = (a.astype(dtype) for a in spike.quadrature(32))
    mu, third, fourth = (jnp.sum(w * eta**k) for k in (1, 3, 4))
    one, skew = jnp.ones_like(mu), third - mu
    mean = jnp.stack([mu * slow.c, mu, one])  # of x eta, eta, eta^2
    var = one - mu**2
    covariance = jnp.stack(
        [
            jnp.stack([slow.n * var, slow.c * var, slow.c * skew]),
            jnp.stack([slow.c * var, var, skew]),
            jnp.stack([slow.c * skew, skew, fourth - one]),
        ]
    )
    value, slope, shift = _delta(lambda a: a[:2] / jnp.sqrt(a[2]), mean, covariance)
    centre = eqx.tree_at(lambda s: (s.m, s.rho), slow, (value[0], value[1]))
    # No scatter of its own in `c`, which stays what it was.
    spread = jnp.zeros((3, 3), dtype)
    index = jnp.array([0, 2])
    spread = spread.at[index[:, None], index].set(slope @ covariance @ slope.T)
    shift = jnp.zeros(3, dtype).at[index].set(shift)
    return Cloud(centre, *_embedded(centre, spread, shift))


def _delta(f: Callable[[Array], Array], mean: Array, covariance: Array):
    """The value of `f`, its slope and the second order of its mean, per unit of 1/p."""
    curvature = jax.jacfwd(jax.jacfwd(f))(mean)
    shift = jnp.einsum("aij,ij->a", curvature, covariance) / 2
    return f(mean), jax.jacfwd(f)(mean), shift


def _embedded(centre: Slow, spread: Array, shift: Array) -> tuple[Array, Array]:
    """Of `(m, c, rho)`, in the order of a raveled `Slow`."""
    size = ravel_pytree(centre)[0].size
    index = jnp.array([0, 1, size - 1])
    covariance = jnp.zeros((size, size), spread.dtype)
    covariance = covariance.at[index[:, None], index].set(spread)
    return covariance, jnp.zeros(size, shift.dtype).at[index].set(shift)
