"""Cold starts: what theory says of |q| over runs, where the limit never leaves q = 0.

While |q| is small it is that of a normal variable, which the drift multiplies and the noise
adds to; beyond, a run follows the mean field. So a run is told by the one normal number `z`
that chance has given it, and the law is an average over `z`. `overlap_law` has the scatter
about each path too, and takes ten times as long to compile.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from .._batch import simulate
from .._cli import output
from .._config import Config, cast
from .._engine import Stream
from .._order_parameters.initial import start_moments
from .._order_parameters.integrate import accurate, in_double
from .._order_parameters.limit import limit
from .._rule import AbstractRule
from .._trajectory import Trajectory
from .._types import Memory, Real
from .curves import TRIALS, Arrays, arrays

# Over the logarithm of |z|, in which paths are smooth steps, the trapezoidal rule converges
# fast; one run in a hundred thousand is below the first node.
_LOG_Z = np.linspace(np.log(1e-5), np.log(5.0), 64)
_Z = np.exp(_LOG_Z)
_WEIGHTS = _Z * np.exp(-(_Z**2) / 2) / np.sum(_Z * np.exp(-(_Z**2) / 2))
# After so many samples an algorithm that forgets its start at once has forgotten it, and
# moves in small steps.
_FIRST = 20


class ColdLaw(NamedTuple):
    """The means of `|q|` and `lam` over runs with their deviations, and the mean gain."""

    law: Trajectory
    gain: Float[Array, " times"]


class _Runs(eqx.Module):
    """Where a run is: one path, or one for each node `z`, at a time or at several."""

    q: Float[Array, "..."]
    lam: Float[Array, "..."]
    memory: Memory


def cold_law(config: Config) -> ColdLaw:
    """The law from a cold start, and after changes to spikes that resemble nothing before.

    The mean of `|q|` is within 0.002 of `overlap_law`'s at p = 10,000, and within the error
    of 1,000 trials also where that has no regular limit.
    """
    runs, gain = in_double(_law, config, np.asarray(config.ts, float))
    q, lam = np.asarray(runs.q, float), np.asarray(runs.lam, float)
    mean, std = zip(*(_moments(x) for x in (q, lam)), strict=True)
    (q, lam), (q_std, lam_std) = (map(jnp.asarray, x) for x in (mean, std))
    law = Trajectory(config.ts, q, lam, q_std=q_std, lam_std=lam_std)
    return ColdLaw(law, jnp.asarray(_moments(np.asarray(gain, float))[0]))


def _moments(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    mean = x @ _WEIGHTS
    return mean, np.sqrt((x - mean[:, None]) ** 2 @ _WEIGHTS)


def _law(config: Config, ts: np.ndarray) -> tuple[_Runs, Array]:
    config = cast(config, jnp.result_type(float))
    rule, p = config.rule, config.model.p
    _, lam0 = start_moments(rule, config.model.phases()[0], config.start)
    begin = jnp.asarray(_FIRST / p, lam0.dtype)
    changes = [jnp.asarray(t, begin.dtype) for t in config.model.changes()]
    begins, phase = [begin, *changes], np.searchsorted(config.model.changes(), ts, "right")
    state, seen = _awake(rule, p, lam0, begin), []
    for i, model in enumerate(config.model.phases()):
        # All phases pass all of the times, held within, so that one program serves all.
        end = begins[i + 1] if i + 1 < len(begins) else jnp.asarray(ts[-1], begin.dtype)
        held = jnp.clip(jnp.asarray(ts), begins[i], end)
        runs = _follow(rule, model.omega, p, state, begins[i], held, end)
        seen.append(jax.tree.map(lambda a: a[:-1], runs))
        # Who is where does not matter to who gets which `z` from the next spike.
        mean = lambda a: jnp.full_like(a[-1], a[-1] @ jnp.asarray(_WEIGHTS))
        state = jax.tree.map(mean, runs[0])
        state = eqx.tree_at(lambda s: s.q, state, jnp.asarray(_Z / p**0.5))
    pick = lambda *phases: jnp.stack(phases)[phase, np.arange(ts.size)]
    return jax.tree.map(pick, *seen)


@eqx.filter_jit
def _awake(rule: AbstractRule, p: int, lam0: Real, begin: Real) -> _Runs:
    """The state after the first samples, of which only a memory takes notice."""
    q, memory = jnp.zeros_like(lam0), rule.tau.init(p)
    drift = limit(rule, q, p, begin, q, lam0, memory).drift
    memory = jax.tree.map(lambda m, d: m + begin * d, memory, drift)
    one = _Runs(q, lam0, memory)
    nodes = jax.tree.map(lambda a: jnp.full(_Z.shape, a), one)
    return eqx.tree_at(lambda s: s.q, nodes, jnp.asarray(_Z / p**0.5))


@eqx.filter_jit
def _follow(
    rule: AbstractRule,
    omega: Real,
    p: int,
    state: _Runs,
    begin: Real,
    ts: Float[Array, " times"],
    end: Real,
) -> tuple[_Runs, Array]:
    """The paths and their gains at `ts` and at `end`."""
    flow = accurate(diffrax.Tsit5(), None, 1e-6, 1e-8)

    def one(z: Real, state: _Runs) -> tuple[_Runs, Array]:
        def at(t: Real, s: _Runs) -> Any:
            return limit(rule, omega, p, t, s.q, s.lam, s.memory)

        def field(t: Real, s: _Runs) -> _Runs:
            a = at(t, s)
            # Where q = z sd, and sd^2 grows by a2 (1 + omega)/p: the noise's share of q.
            noise = a.a2 * (1 + omega) * z**2 / (2 * p * s.q)
            turn = a.turn(omega, s.q, s.q, jnp.ones_like(s.q))
            return _Runs(turn + noise, a.stretch(rule, s.lam), a.drift)

        def leg(carry: tuple[Real, _Runs], t1: Real):
            t0, state = carry
            state = flow.between(field, state, t0, t1)
            a = at(t1, state)
            return (t1, state), (state, a.a1 / a.s2)

        return lax.scan(leg, (begin, state), jnp.append(ts, end))[1]

    return jax.vmap(one, out_axes=1)(jnp.asarray(_Z), state)


def cold_learned(
    configs: Mapping[str, Config],
    *,
    trials: int = TRIALS,
    seed: int = 0,
    witness: Mapping[str, float] | None = None,
) -> Arrays:
    """As `learned`, from cold starts: theory, trials and witnesses of the configs with |q|
    for q, and the mean gain, as arrays by the configs' names.

    Trial by trial all begin at the same place and see the same samples: when a run leaves
    q = 0 is chance, which differences of algorithms are not to be blurred by.
    """
    found: Arrays = {}
    key, other = jr.split(jr.key(seed))
    for name, config in configs.items():
        theory, gain = cold_law(config)
        found |= arrays(f"{name}/theory", theory) | {f"{name}/gain": np.asarray(gain)}
        found |= arrays(f"{name}/runs", simulate(config, key=key, trials=trials).abs())
        if witness and name in witness:
            short = output.until(config, witness[name])
            few = simulate(short, key=other, trials=2, engine=Stream())
            found |= arrays(f"{name}/witness", few.abs())
    return found


def time_to(ts: np.ndarray, q: np.ndarray, level: float) -> np.ndarray:
    """When each row of `q` first reaches the level, interpolated; infinite if never."""
    reached = q >= level
    at = np.argmax(reached, axis=1)
    before, rows = np.maximum(at - 1, 0), np.arange(len(q))
    low, high = q[rows, before], q[rows, at]
    part = np.divide(level - low, high - low, out=np.zeros(len(q)), where=high > low)
    found = ts[before] + np.clip(part, 0, 1) * (ts[at] - ts[before])
    return np.where(reached.any(axis=1), found, np.inf)
