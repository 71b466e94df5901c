"""The mean field's path through every phase of the model."""

import equinox as eqx
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float

from .._config import Config, cast
from .._engine.base import start_moments
from .._types import Real, Times
from .flow import Flow
from .limit import limit


class Path(eqx.Module):
    """The overlap with the spike in force and the norm, at some times.

    The law of an entry moves by an affine map and a Gaussian: within a phase it is that
    of `shrink x_begin + shift xi + sqrt(variance) g`, where `shift` and `variance` follow
    from `begins`, the overlap and the norm when the phase began.
    """

    q: Float[Array, " times"]
    lam: Float[Array, " times"]
    shrink: Float[Array, " times"]
    begins: tuple[tuple[Real, Real], ...]
    within: tuple[Bool[Array, " times"], ...]

    def affine(self, phase: int) -> tuple[Array, Array, Array]:
        """`(shrink, shift, variance)` at each of the times, right for those in `phase`."""
        q0, lam0 = self.begins[phase]
        along = self.q * self.lam - self.shrink * q0 * lam0
        left = self.lam**2 * (1 - self.q**2)
        # The difference of two positive numbers, one of them the start's; at the begin
        # it is zero, and rounding must not make it less.
        variance = left - self.shrink**2 * lam0**2 * (1 - q0**2)
        return self.shrink, along, jnp.where(variance > 0, variance, 0)


@eqx.filter_jit
def follow(config: Config, ts: Times, flow: Flow, shrinking: bool = False) -> Path:
    """The path at `ts`; `shrink` is not a number unless asked for by `shrinking`."""
    config = cast(config, jnp.result_type(float))
    rule, models = config.rule, config.model.phases()
    q0, lam0 = start_moments(rule, models[0], config.start)
    ts = jnp.asarray(ts, lam0.dtype)
    # The overlaps with all spikes, of this phase and the later ones: x remembers those
    # before, and they may resemble those to come. Two spikes overlap by their means.
    means = jnp.stack([model.spike.mean().astype(ts.dtype) for model in models])
    overlaps = jnp.where(jnp.eye(len(models), dtype=bool), 1, jnp.outer(means, means))
    qs = q0 * overlaps[0]
    if shrinking:
        # A direction orthogonal to all spikes: x loses its part along it by the same
        # factor by which each entry's memory of its beginning shrinks.
        overlaps = jnp.pad(overlaps, ((0, 0), (0, 1)))
        qs = jnp.append(qs, jnp.ones_like(q0))
    state = (qs, lam0, rule.tau.init(config.model.p))

    changes = [jnp.asarray(t, ts.dtype) for t in config.model.changes()]
    begins = [jnp.zeros((), ts.dtype), *changes]
    q, lam = jnp.zeros_like(ts), jnp.zeros_like(ts)
    shrink = jnp.full_like(ts, jnp.nan)
    started, within = [], []
    for i, model in enumerate(models):
        if shrinking:
            state = (state[0].at[-1].set(1), *state[1:])
        started.append((state[0][i], state[1]))
        # A phase passes over all of the times, held within it, and what it saw outside
        # is thrown away: the shapes stay static when the times are traced.
        end = ts[-1] if i + 1 == len(models) else begins[i + 1]
        end = jnp.where(end < begins[i], begins[i], end)
        # Not `clip`, which halves the derivative of a time at the phase's own edge.
        inside = jnp.where(ts < begins[i], begins[i], jnp.where(ts > end, end, ts))
        inside = jnp.append(inside, end)

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
            state = flow.between(field, state, t0, t1)
            return (t1, state), state

        (_, state), (qs, lams, _) = lax.scan(leg, (begins[i], state), inside)
        mine = ts >= begin_of(begins[i])
        q, lam = jnp.where(mine, qs[:-1, i], q), jnp.where(mine, lams[:-1], lam)
        if shrinking:
            shrink = jnp.where(mine, qs[:-1, -1] * lams[:-1] / started[i][1], shrink)
        within = [*(w & ~mine for w in within), mine]
    return Path(q, lam, shrink, tuple(started), tuple(within))


def begin_of(t):
    """From when on a time counts as in the phase that begins at `t`: as forgiving of
    rounding as the steps of a simulation are."""
    return t * (1 - 4 * jnp.finfo(jnp.result_type(float)).eps)
