"""What one sample does to the few numbers that move slowly, to second order in 1/p."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from .._model import SpikedModel
from .._observables import Sample
from .._rule import AbstractRule, rates_at
from .._types import Memory, Real
from .limit import COARSE, Nodes, limit


class Slow(eqx.Module):
    """What moves by 1/p at a sample, and no more is needed to know how.

    `m = x.xi/p = q lam` and `n = |x|^2/p = lam^2`, in which a small norm is nothing
    special; `c` is the mean entry of `x`, by which it resembles spikes to come; the
    schedule's `memory`; and the mean entry `rho` of the spike in force, which a phase of
    the model keeps.
    """

    m: Real
    c: Real
    n: Real
    memory: Memory
    rho: Real

    def lam(self) -> Real:
        return jnp.sqrt(self.n)

    def q(self) -> Real:
        return self.m / self.lam()


def drift(rule: AbstractRule, model: SpikedModel, t: Real, slow: Slow) -> Slow:
    """`p` times the mean change at a sample, as p grows."""
    lam, q, omega = slow.lam(), slow.q(), model.omega
    a = limit(rule, omega, model.float_p, t, q, lam, slow.memory)
    # E[S W] of a direction: that of the noise, and of the signal if it resembles the spike.
    pull, loss = lam * a.a1 / a.s2, a.a3
    growth = 2 * a.a1 + a.a2 - 2 * a.a3
    if rule.projects:
        loss, growth = loss + growth / 2, jnp.zeros_like(growth)
    return Slow(
        m=pull * (1 + omega) * q - loss * slow.m,
        c=pull * (omega * q * slow.rho + slow.c / lam) - loss * slow.c,
        n=growth * slow.n,
        memory=a.drift,
        rho=jnp.zeros_like(slow.rho),
    )


class Noise(eqx.Module):
    """How a sample's change scatters about its mean, and what the mean is at finite p.

    `kinds[i]` is `p` times the change at a sample of kind `i`, less the mean; a sample is
    of this kind with the probability `weights[i]`. `free` is the square of a further
    scatter of `c` alone. `next_drift/p` corrects the drift.
    """

    kinds: Float[Array, "kinds state"]
    weights: Float[Array, " kinds"]
    free: Real
    next_drift: Float[Array, " state"]

    def covariance(self) -> Float[Array, "state state"]:
        """`p^2` times the covariance of a sample's change."""
        between = jnp.einsum("k,ki,kj->ij", self.weights, self.kinds, self.kinds)
        return between.at[_C, _C].add(self.free)

    def draw(self, z: Float[Array, " normals"]) -> Float[Array, " state"]:
        """A vector of this covariance out of standard normals, one more than kinds: by how
        much each kind is seen more often than it should be. Nothing is factorised, so a
        direction without noise is no trouble."""
        sum_of_kinds = (z[:-1] * jnp.sqrt(self.weights)) @ self.kinds
        return sum_of_kinds.at[_C].add(z[-1] * jnp.sqrt(self.free))


_C = 1  # where `c` is in a raveled `Slow`


def noise_of(
    rule: AbstractRule, model: SpikedModel, t: Real, slow: Slow, nodes: Nodes = COARSE
) -> Noise:
    """The scatter of one sample's change, and its mean to the next order.

    A sample is seen through `S`, its component along `x`, and `T`, that along the part of
    the spike orthogonal to it: jointly normal, and `S` itself from `nodes`. Given `S`, all
    is a polynomial in `T` of a degree that two values of it integrate exactly.
    """
    q, omega = _held(slow.q()), model.omega
    s2, across = omega * q**2 + 1, jnp.sqrt(1 - q**2)
    s = jnp.sqrt(s2) * jnp.asarray(nodes.values, q.dtype)
    centre, radius = omega * q * across / s2 * s, jnp.sqrt((1 + omega) / s2)
    s, along = jnp.tile(s, 2), jnp.concatenate([centre - radius, centre + radius])
    weights = jnp.tile(jnp.asarray(nodes.weights / 2, q.dtype), 2)

    def change(eps: Real, r: Real, s: Real, along: Real) -> tuple[Array, Real]:
        r = r + eps * (s**2 + along**2 - 2)
        moved, free = _change(rule, model, eps, t, slow, s, along, r)
        return ravel_pytree(moved)[0], free**2

    def expand(s: Real, along: Real) -> tuple[Array, Real, Array]:
        zero, one = jnp.zeros_like(t), jnp.ones_like(t)
        (first, free), (by_eps, _) = jax.jvp(
            lambda eps: change(eps, one, s, along), (zero,), (one,)
        )
        # |y|^2/p is 1 up to a scatter of variance 2/p, of which a rule may take notice.
        slope = lambda r: jax.jvp(lambda r: change(zero, r, s, along)[0], (r,), (one,))[1]
        _, curvature = jax.jvp(slope, (one,), (one,))
        return first, free, by_eps + curvature

    first, free, second = jax.vmap(expand)(s, along)
    mean = weights @ first
    return Noise(first - mean[None, :], weights, weights @ free, weights @ second)


def root(x: Array) -> Array:
    """The square root of what is not negative but for rounding; its derivative at zero is
    0, not infinite."""
    return jnp.where(x <= 0, 0, jnp.sqrt(jnp.where(x <= 0, 1, x)))


def _held(q: Real) -> Real:
    """`q` within (-1, 1), where a step of finite length may have left it."""
    edge = 1 - 4 * float(jnp.finfo(q.dtype).eps)
    return jnp.clip(q, -edge, edge)


def _change(
    rule: AbstractRule,
    model: SpikedModel,
    eps: Real,
    t: Real,
    slow: Slow,
    s: Real,
    along: Real,
    r: Real,
) -> tuple[Slow, Real]:
    """The change at one sample over `eps = 1/p`, exactly; `eps = 0` is its limit.

    Also the factor of a standard normal in the change of `c`: the sample's component
    in the direction that `x` and the spike leave of the vector of ones.
    """
    lam, q = slow.lam(), _held(slow.q())
    across = jnp.sqrt(1 - q**2)
    big_p = jnp.asarray(model.float_p, lam.dtype)
    sample = Sample(lam=lam, s2=s**2, r=r, t=t + eps, p=big_p)
    memory_drift = rule.tau.drift(sample, slow.memory)
    memory = jax.tree.map(lambda m, d: m + eps * d, slow.memory, memory_drift)
    rates = rates_at(rule, sample, q, model.omega, memory)
    gain, decay = rates.gain, rates.decay

    on_x = slow.c / lam
    on_rest = (slow.rho - q * on_x) / across
    pull = lam * gain * s
    m = pull * (q * s + across * along) - decay * slow.m
    c = pull * (on_x * s + on_rest * along) - decay * slow.c
    free = pull * root(1 - on_x**2 - on_rest**2)
    growth = (2 * gain + gain**2 * r) * s**2 - 2 * decay
    growth = growth + eps * (decay**2 - 2 * decay * gain * s**2)
    if rule.projects:
        # (m + eps dm)/sqrt(1 + eps growth) - m, over eps and without the cancellation.
        size = jnp.sqrt(1 + eps * growth)
        shrink = growth / (size * (1 + size))
        m, c, free = m / size - shrink * slow.m, c / size - shrink * slow.c, free / size
        growth = jnp.zeros_like(growth)
    moved = Slow(m, c, growth * slow.n, memory_drift, jnp.zeros_like(slow.rho))
    return moved, free
