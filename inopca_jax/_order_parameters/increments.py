"""The change of the order parameters at one sample, to second order in 1/p."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from .._model import SpikedModel
from .._numerics import root
from .._observables import Observables
from .._rule import AbstractRule, rates_at
from .._types import Real, ScheduleState
from .limit import COARSE, Quadrature, limit_coefficients


class OrderParameters(eqx.Module):
    """The order parameters: with a sample's noise they determine their own change.

    Each sample changes them by O(1/p).

    **Arguments:**

    - `m`: `x.xi/p = q lam`.
    - `mean_entry`: the mean entry of `x`, which determines its overlap with later spikes.
    - `n`: `|x|^2/p = lam^2`. In `m` and `n` a small norm is no singular point.
    - `schedule`: the schedule's state.
    - `spike_mean`: the mean entry of the spike in force, constant within a segment unless
      the spike turns.
    """

    m: Real
    mean_entry: Real
    n: Real
    schedule: ScheduleState
    spike_mean: Real

    def lam(self) -> Real:
        return jnp.sqrt(self.n)

    def q(self) -> Real:
        return self.m / self.lam()


def drift(
    rule: AbstractRule, model: SpikedModel, t: Real, params: OrderParameters
) -> OrderParameters:
    """Returns the limit of `p` times the mean change at one sample."""
    lam, q, omega = params.lam(), params.q(), model.effective_omega
    limit = limit_coefficients(rule, omega, model.p, t, q, lam, params.schedule)
    # The gain acts on a direction through the noise, and through the signal as far as the
    # direction overlaps with the spike.
    gain, loss = lam * limit.a1 / limit.s2, limit.a3
    growth = 2 * limit.a1 + limit.a2 - 2 * limit.a3
    if rule.projects:
        loss, growth = loss + growth / 2, jnp.zeros_like(growth)
    along_ones = omega * q * params.spike_mean + params.mean_entry / lam
    m = gain * (1 + omega) * q - loss * params.m
    spike_mean = jnp.zeros_like(params.spike_mean)
    if model.turning is not None:
        m = m - model.turning * params.m
        spike_mean = -model.turning * params.spike_mean
    return OrderParameters(
        m=m,
        mean_entry=gain * along_ones - loss * params.mean_entry,
        n=growth * params.n,
        schedule=limit.schedule_drift,
        spike_mean=spike_mean,
    )


class Noise(eqx.Module):
    """The scatter of one sample's change about its mean, and the mean's correction.

    The law of a sample is replaced by a few kinds of samples with the same moments. If the
    spike turns, two more kinds stand for its random direction.

    **Arguments:**

    - `changes`: `p` times the change at a sample of each kind, less the mean.
    - `weights`: the probabilities of the kinds; 1 for the directions of a spike that turns,
      which are independent of the sample.
    - `mean_entry_variance`: the variance of a further, independent change of `mean_entry`.
    - `next_drift`: over `p`, the correction of the drift at finite p.
    """

    changes: Float[Array, "kinds state"]
    weights: Float[Array, " kinds"]
    mean_entry_variance: Real
    next_drift: Float[Array, " state"]

    def covariance(self) -> Float[Array, "state state"]:
        """Returns `p^2` times the covariance of a sample's change."""
        between = jnp.einsum("k,ki,kj->ij", self.weights, self.changes, self.changes)
        return between.at[_MEAN_ENTRY, _MEAN_ENTRY].add(self.mean_entry_variance)

    def draw(self, z: Float[Array, " normals"]) -> Float[Array, " state"]:
        """Returns a vector of this covariance out of standard normals, one more than kinds.

        Each normal says by how much its kind is more frequent than its probability. No
        matrix is factorised, so that directions without noise need no special care.
        """
        sum_of_kinds = (z[:-1] * jnp.sqrt(self.weights)) @ self.changes
        return sum_of_kinds.at[_MEAN_ENTRY].add(z[-1] * jnp.sqrt(self.mean_entry_variance))


_MEAN_ENTRY = 1  # the index of `mean_entry` in raveled `OrderParameters`


def sample_noise(
    rule: AbstractRule,
    model: SpikedModel,
    t: Real,
    params: OrderParameters,
    nodes: Quadrature = COARSE,
) -> Noise:
    """Returns the scatter of one sample's change, and its mean to the next order.

    A sample acts through `S`, its component along `x`, and `T`, that along the part of the
    spike orthogonal to `x`. They are jointly normal; `S` takes the values of `nodes`. Given
    `S`, the change is a polynomial in `T` that two values of `T` integrate exactly.
    """
    q, omega = _inside_unit_interval(params.q()), model.effective_omega
    s2, across = omega * q**2 + 1, jnp.sqrt(1 - q**2)
    s = jnp.sqrt(s2) * jnp.asarray(nodes.values, q.dtype)
    centre, radius = omega * q * across / s2 * s, jnp.sqrt((1 + omega) / s2)
    s, along = jnp.tile(s, 2), jnp.concatenate([centre - radius, centre + radius])
    weights = jnp.tile(jnp.asarray(nodes.weights / 2, q.dtype), 2)

    def change(eps: Real, r: Real, s: Real, along: Real) -> tuple[Array, Real]:
        r = r + eps * (s**2 + along**2 - 2)
        change, ones_std = _change(rule, model, eps, t, params, s, along, r)
        return ravel_pytree(change)[0], ones_std**2

    def expand(s: Real, along: Real) -> tuple[Array, Real, Array]:
        zero, one = jnp.zeros_like(t), jnp.ones_like(t)
        (first, ones_variance), (by_eps, _) = jax.jvp(
            lambda eps: change(eps, one, s, along), (zero,), (one,)
        )
        # |y|^2/p is 1 up to a scatter of variance 2/p, which a rule may depend on.
        slope = lambda r: jax.jvp(lambda r: change(zero, r, s, along)[0], (r,), (one,))[1]
        _, curvature = jax.jvp(slope, (one,), (one,))
        return first, ones_variance, by_eps + curvature

    first, ones_variance, second = jax.vmap(expand)(s, along)
    mean = weights @ first
    changes, next_drift = first - mean[None, :], weights @ second
    kinds = weights
    if model.turning is not None:
        turns = turning_changes(model.turning, params)
        changes = jnp.concatenate([changes, turns])
        kinds = jnp.concatenate([weights, jnp.ones(len(turns), weights.dtype)])
    return Noise(changes, kinds, weights @ ones_variance, next_drift)


def turning_changes(
    turning: Real, params: OrderParameters
) -> Float[Array, "directions state"]:
    """Returns `p` times the changes of the order parameters as the spike turns by one
    standard deviation into each of two directions orthogonal to it.

    The first is that of the estimate; the second, orthogonal to it, is that of the vector
    of ones.
    """
    q, on_x = _inside_unit_interval(params.q()), params.mean_entry / params.lam()
    across = jnp.sqrt(1 - q**2)
    on_first = (on_x - q * params.spike_mean) / across
    on_second = root(1 - params.spike_mean**2 - on_first**2)
    still = jax.tree.map(jnp.zeros_like, params)
    both = lambda p: (p.m, p.spike_mean)
    first = eqx.tree_at(both, still, (params.lam() * across, on_first))
    second = eqx.tree_at(lambda p: p.spike_mean, still, on_second)
    scale = root(2 * turning)
    return scale * jnp.stack([ravel_pytree(first)[0], ravel_pytree(second)[0]])


TURNING_DIRECTIONS = 2
"""How many directions `turning_changes` has."""


def _inside_unit_interval(q: Real) -> Real:
    """Returns `q`, moved into (-1, 1) if a step of finite length has left the interval."""
    edge = 1 - 4 * float(jnp.finfo(q.dtype).eps)
    return jnp.clip(q, -edge, edge)


def _change(
    rule: AbstractRule,
    model: SpikedModel,
    eps: Real,
    t: Real,
    params: OrderParameters,
    s: Real,
    along: Real,
    r: Real,
) -> tuple[OrderParameters, Real]:
    """Returns the exact change at one sample over `eps = 1/p`; `eps = 0` is its limit.

    Also returns `ones_std`, the factor of a standard normal in the change of `mean_entry`.
    This normal is the sample's component along the part of the vector of ones that is
    orthogonal to `x` and the spike.
    """
    lam, q = params.lam(), _inside_unit_interval(params.q())
    across = jnp.sqrt(1 - q**2)
    p = jnp.asarray(model.p, lam.dtype)
    observables = Observables(lam=lam, s2=s**2, r=r, t=t + eps, p=p)
    schedule_drift = rule.tau.drift(observables, params.schedule)
    schedule = jax.tree.map(lambda x, d: x + eps * d, params.schedule, schedule_drift)
    rates = rates_at(rule, observables, q, model.effective_omega, schedule)
    gain, decay = rates.gain, rates.decay

    on_x = params.mean_entry / lam
    on_rest = (params.spike_mean - q * on_x) / across
    step = lam * gain * s
    m = step * (q * s + across * along) - decay * params.m
    mean_entry = step * (on_x * s + on_rest * along) - decay * params.mean_entry
    ones_std = step * root(1 - on_x**2 - on_rest**2)
    growth = (2 * gain + gain**2 * r) * s**2 - 2 * decay
    growth = growth + eps * (decay**2 - 2 * decay * gain * s**2)
    if rule.projects:
        # (m + eps dm)/sqrt(1 + eps growth) - m, over eps and without the cancellation.
        size = jnp.sqrt(1 + eps * growth)
        shrink = growth / (size * (1 + size))
        m, mean_entry = (
            change / size - shrink * before
            for change, before in ((m, params.m), (mean_entry, params.mean_entry))
        )
        ones_std, growth = ones_std / size, jnp.zeros_like(growth)
    spike_mean = jnp.zeros_like(params.spike_mean)
    if model.turning is not None:
        # The spike turns after the sample: its old direction keeps the factor `keep`.
        keep = jnp.sqrt(1 - 2 * model.turning * eps)
        shrink = 2 * model.turning / (1 + keep)
        m = keep * m - shrink * params.m
        spike_mean = -shrink * params.spike_mean
    change = OrderParameters(m, mean_entry, growth * params.n, schedule_drift, spike_mean)
    return change, ones_std
