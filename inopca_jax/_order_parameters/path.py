"""The mean field's path through every phase of the model."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Integer

from .._check import is_known
from .._config import Config, cast
from .._types import Real, Times
from .increments import root
from .initial import start_moments
from .integrate import Flow
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
    return Move(shrink, shift, root(variance), q * lam, root(left))


class Window(NamedTuple):
    """A phase: when it begins, the times held within it and then its end, and which of the
    times are in it or in a later one."""

    begin: Real
    inside: Float[Array, " times_and_end"]
    mine: Bool[Array, " times"]


def windows(config: Config, ts: Float[Array, " times"]) -> list[Window]:
    """One for each phase. A phase passes over all of the times, held within it, and what
    it saw outside is thrown away: the shapes stay static when the times are traced."""
    changes = [jnp.asarray(t, ts.dtype) for t in config.model.changes()]
    begins = [jnp.zeros((), ts.dtype), *changes]
    found = []
    for begin, end in zip(begins, [*changes, ts[-1]], strict=True):
        end = jnp.where(end > ts[-1], ts[-1], end)
        end = jnp.where(end < begin, begin, end)
        # Not `clip`, which halves the derivative of a time at the phase's own edge.
        inside = jnp.where(ts < begin, begin, jnp.where(ts > end, end, ts))
        found.append(Window(begin, jnp.append(inside, end), ts >= begin_of(begin)))
    return found


@eqx.filter_jit
def follow(config: Config, ts: Times, flow: Flow, shrinking: bool = False) -> Path:
    """The path at `ts`; `shrink` is not a number unless asked for by `shrinking`."""
    config = cast(config, jnp.result_type(float))
    rule, models = config.rule, config.model.phases()
    q0, lam0 = start_moments(rule, models[0], config.start)
    ts = jnp.asarray(ts, lam0.dtype)
    # The overlaps with the spike and with the vector of ones: the next spike's entries
    # are independent of x, so it resembles x by its mean times the mean of x, no more.
    raw = config.start.moments(models[0].spike)[1]
    ones = config.start.mean(models[0].spike).astype(ts.dtype) / raw.astype(ts.dtype)
    # And with a direction orthogonal to both, if asked for: x loses its part along it by
    # the factor by which each entry's memory of its beginning shrinks.
    qs = jnp.stack([q0, ones, jnp.ones_like(q0)][: 3 if shrinking else 2])
    state = (qs, lam0, rule.tau.init(config.model.float_p))

    q, lam = jnp.zeros_like(ts), jnp.zeros_like(ts)
    shrink = jnp.full_like(ts, jnp.nan)
    started, ended, within = [], [], []
    for i, (model, window) in enumerate(zip(models, windows(config, ts), strict=True)):
        mean = model.spike.mean().astype(ts.dtype)
        rho = jnp.stack([jnp.ones_like(mean), mean, jnp.zeros_like(mean)][: qs.size])
        if i > 0:
            qs, *others = state
            state = (jnp.stack([mean * qs[1], qs[1], *jnp.ones_like(qs[2:])]), *others)
        started.append((state[0][0], state[1]))

        def field(t, state, rho=rho, model=model):
            qs, lam, memory = state
            a = limit(rule, model.omega, model.float_p, t, qs[0], lam, memory)
            turn = a.turn(model.omega, qs[0], qs, rho)
            return turn, a.stretch(rule, lam), a.drift

        def leg(carry, t1: Real, field=field):
            t0, state = carry
            state = flow.between(field, state, t0, t1)
            return (t1, state), state

        (_, state), (seen, lams, _) = lax.scan(leg, (window.begin, state), window.inside)
        mine = window.mine
        q, lam = jnp.where(mine, seen[:-1, 0], q), jnp.where(mine, lams[:-1], lam)
        if shrinking:
            shrunk = seen[:, 2] * lams / started[i][1]
            shrink = jnp.where(mine, shrunk[:-1], shrink)
            ended.append((seen[-1, 0], lams[-1], shrunk[-1]))
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
