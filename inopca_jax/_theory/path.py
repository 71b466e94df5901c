"""The mean field's path through every phase of the model."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Integer

from .._check import is_known
from .._config import Config, cast
from .._engine.base import start_moments
from .._types import Real, Times
from .flow import Flow
from .limit import limit


class Path(eqx.Module):
    """The overlap with the spike in force and the norm, at some times; the same at the
    begins and ends of the phases, and by how much an entry's memory of the begin of its
    phase has shrunk."""

    q: Float[Array, " times"]
    lam: Float[Array, " times"]
    shrink: Float[Array, " times"]
    begins: tuple[tuple[Real, Real], ...]
    ends: tuple[tuple[Real, Real, Real], ...]
    within: tuple[Bool[Array, " times"], ...]

    def rows(self, index: Integer[Array | np.ndarray, " some"]) -> "Path":
        """The path at some of its times."""
        q, lam, shrink, within = jax.tree.map(
            lambda a: a[index], (self.q, self.lam, self.shrink, self.within)
        )
        return Path(q, lam, shrink, self.begins, self.ends, within)

    def at_times(self, phase: int) -> "Move":
        """Since the begin of `phase`, at each of the times; right for those in it."""
        return _move(self.begins[phase], self.q, self.lam, self.shrink)

    def at_end(self, phase: int) -> "Move":
        """Since the begin of `phase`, just before the next one."""
        return _move(self.begins[phase], *self.ends[phase])


class Move(eqx.Module):
    """An entry's law became that of `shrink x + shift xi + sd g`; from a Gaussian start it
    is Gaussian, of mean `centre xi` and standard deviation `radius`."""

    shrink: Array
    shift: Array
    sd: Array
    centre: Array
    radius: Array


def _move(begin: tuple[Real, Real], q: Array, lam: Array, shrink: Array) -> Move:
    q0, lam0 = begin
    left = lam**2 * (1 - q**2)
    # Of two positive numbers, the second is what the first would be without noise. At
    # the begin they are equal, up to a rounding that must not make it negative.
    variance = left - shrink**2 * lam0**2 * (1 - q0**2)
    shift = q * lam - shrink * q0 * lam0
    return Move(shrink, shift, _root(variance), q * lam, _root(left))


def _root(x: Array) -> Array:
    """The square root, and 0 for what is less; its derivative there is 0, not infinite."""
    return jnp.where(x > 0, jnp.sqrt(jnp.where(x > 0, x, 1)), 0)


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
    raw = config.start.moments(models[0].spike)[1]
    later = config.start.mean(models[0].spike).astype(ts.dtype) / raw.astype(ts.dtype)
    qs = (later * means).at[0].set(q0)
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
    started, ended, within = [], [], []
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
            shrunk = qs[:, -1] * lams / started[i][1]
            shrink = jnp.where(mine, shrunk[:-1], shrink)
            ended.append((qs[-1, i], lams[-1], shrunk[-1]))
        within = [*(w & ~mine for w in within), mine]
    return Path(q, lam, shrink, tuple(started), tuple(ended), tuple(within))


def begin_of(t):
    """From when on a time counts as in the phase that begins at `t`: as forgiving of
    rounding as the steps of a simulation are."""
    return t * (1 - 4 * jnp.finfo(jnp.result_type(float)).eps)


def known_times(config: Config) -> tuple[Any, Any]:
    """The times and those of the changes; under a `grad`, which only looks as if they
    were not known, without their derivatives."""
    times = (config.ts, config.model.changes())
    return times if is_known(*times) else lax.stop_gradient(times)
