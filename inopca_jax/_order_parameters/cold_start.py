"""The law of `|q|` over runs from cold starts, as an average over one normal variable.

From a cold start the mean field stays at `q = 0`, and chance decides when a run leaves it.
While `|q|` is small, `q` is normal: the drift multiplies its standard deviation and the
noise adds to it. Once `|q|` is large, a run follows the mean field. So, to leading order,
one standard normal number `z` determines a whole run: its overlap, over the standard
deviation of overlaps, while that is small. Its path obeys

    dq/dt = (mean field) + a2 (1 + omega) z^2 / (2 p q),    q = z / sqrt(p) at the start,

and the law of `|q|` is the average of the paths over `z`.
"""

from typing import NamedTuple

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._check import Checked, is_known, require_instance
from .._config import Config, require_single, rule_of_one
from .._model import SpikedModel
from .._numerics import cast
from .._rule import AbstractRule, initial_state
from .._start import AbstractStart, FirstSamples
from .._timeline import AbstractProcess, evolve, segments
from .._trajectory import Prediction
from .._types import Count, Dimension, Real, ScheduleState
from .initial import start_moments
from .integrate import Integrator, in_double, make_integrator
from .limit import LimitCoefficients, limit_coefficients
from .predict import ZERO_OVERLAP, is_regular, related_switches

# Nodes |z| and weights of the average. As functions of log |z| the paths are smooth, so the
# trapezoidal rule converges fast. One run in a hundred thousand is below the first node.
_LOG_Z = np.linspace(np.log(1e-5), np.log(5.0), 64)
_Z = np.exp(_LOG_Z)
_WEIGHTS = _Z * np.exp(-(_Z**2) / 2) / np.sum(_Z * np.exp(-(_Z**2) / 2))
# The paths begin after this many samples. An algorithm whose first samples outweigh its
# start has by then forgotten the start, and takes small steps.
_FIRST_SAMPLES = 20


class ColdStartLaw(NamedTuple):
    """The law of runs from a cold start.

    **Arguments:**

    - `law`: the means `q` of `|q|` and `lam` over runs, and their standard deviations
      `q_std` and `lam_std`. Its shifts are 0, and its correlation is NaN.
    - `gain`: the mean of the gain `nu`, of shape (times,).

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> config = ino.Config(start=ino.ColdStart(), ts=[0.0, 10.0, 50.0])
    >>> result = ino.cold_start_law(config)
    >>> result.law.q_std.shape, result.gain.shape
    ((3,), (3,))
    ```
    """

    law: Prediction
    gain: Float[Array, " times"]


def cold_start_law(config: Checked[Config]) -> ColdStartLaw:
    """Returns the means of `|q|`, `lam` and the gain over runs that forget their start.

    These are runs from a `ColdStart`, runs of an algorithm whose first samples outweigh any
    start (AdaOja and CCIPCA as published), and runs after a change to a spike that has no
    overlap with the one before. `overlap_law` also has the scatter about each path, but
    takes ten times as long to compile, and needs an algorithm that remembers its start. The
    means of `|q|` of the two agree within 0.002 at p = 10,000; where `overlap_law` does not
    apply, this one agrees with 1,000 trials of the chain within their error.

    **Arguments:**

    - `config`: the problem. Its start's overlap is not used.

    **Returns:**

    A `ColdStartLaw`, the pair `(law, gain)`: a `Prediction`, and the mean gain of shape
    (times,).

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> config = ino.Config(start=ino.ColdStart(), ts=[0.0, 10.0, 50.0])
    >>> law, gain = ino.cold_start_law(config)
    >>> [round(float(q), 2) for q in law.q]
    [0.01, 0.25, 0.88]
    ```
    """
    require_instance("config", config, Config)
    require_single(config, "cold_start_law")
    _require_forgotten_start(config)
    _require_unrelated_spikes(config)
    integrator = make_integrator(diffrax.Tsit5(), None, 1e-6, 1e-8)
    q, lam, gain = in_double(_moments, config, integrator)
    zero, unknown = jnp.zeros_like(q[0]), jnp.full_like(q[0], jnp.nan)
    law = Prediction(config.ts, q[0], lam[0], q[1], lam[1], unknown, zero, zero)
    return ColdStartLaw(law, gain[0])


def _require_forgotten_start(config: Config) -> None:
    q0, _ = config.start.moments(config.model.phases()[0].spike)
    if not is_known(q0, *jax.tree.leaves((config.rule, config.model))):
        return
    if abs(float(q0)) > ZERO_OVERLAP and is_regular(config):
        raise ValueError(
            f"start with q0 = {float(q0):.3g} is not allowed: this algorithm remembers it. "
            "Pass ColdStart(), or call mean_field or fluctuations."
        )


def _require_unrelated_spikes(config: Config) -> None:
    if any(related_switches(config)):
        raise ValueError(
            "model that changes between spikes of nonzero means is not allowed: the "
            "estimate keeps an overlap with the new spike. Call overlap_law."
        )


def _moments(config: Config, integrator: Integrator) -> tuple[tuple[Array, Array], ...]:
    """Returns the means and standard deviations of `|q|`, `lam` and the gain."""
    config = cast(config, jnp.result_type(float))
    ts = jnp.asarray(config.ts, jnp.result_type(float))
    run = evolve(_Paths(rule_of_one(config), integrator), config, segments(config, ts))
    return tuple(map(_mean_and_std, run.observations))


def _mean_and_std(values: Float[Array, "times nodes"]) -> tuple[Array, Array]:
    weights = jnp.asarray(_WEIGHTS, values.dtype)
    mean = values @ weights
    return mean, jnp.sqrt((values - mean[:, None]) ** 2 @ weights)


class _State(eqx.Module):
    """The state of a run, or of the runs of all nodes `z`."""

    q: Float[Array, "*nodes"]
    lam: Float[Array, "*nodes"]
    schedule: ScheduleState
    gain: Float[Array, "*nodes"]


class _Paths(AbstractProcess):
    """The runs of all nodes `z`, side by side, as a process."""

    rule: AbstractRule
    integrator: Integrator

    def init(self, model: SpikedModel, start: AbstractStart) -> _State:
        rule, p = self.rule, jnp.asarray(model.p)
        _, lam0 = start_moments(rule, model, start)
        # The first samples change the state of the schedule alone.
        q, begin, schedule = (
            jnp.zeros_like(lam0),
            _FIRST_SAMPLES / p,
            initial_state(rule, p),
        )
        drift = limit_coefficients(rule, q, p, begin, q, lam0, schedule).schedule_drift
        schedule = jax.tree.map(lambda s, d: s + begin * d, schedule, drift)
        nodes = lambda a: jnp.full(_Z.shape, a)
        state = _State(q, lam0, schedule, jnp.zeros_like(q))
        # A sample has more of the spike than a random direction.
        excess = 1 + model.omega if isinstance(start, FirstSamples) else 1
        return _with_new_overlaps(jax.tree.map(nodes, state), p / excess)

    def advance(self, model: SpikedModel, state: _State, begin: Real, end: Real) -> _State:
        # The paths begin after the first samples.
        begin, end = (jnp.maximum(t, _FIRST_SAMPLES / model.p) for t in (begin, end))

        def one_path(z: Real, state: _State) -> _State:
            def limit(t: Real, state) -> LimitCoefficients:
                q, lam, schedule = state
                omega, p = model.effective_omega, model.p
                return limit_coefficients(self.rule, omega, p, t, q, lam, schedule)

            def field(t: Real, state):
                q, lam, _ = state
                a = limit(t, state)
                # The noise raises the variance of q by a2 (1 + omega)/p per unit of time,
                # a spike that turns by 2 delta/p, and q is z standard deviations.
                omega, variance = model.effective_omega, a.a2
                variance = variance * (1 + omega)
                if model.turning is not None:
                    variance = variance + 2 * model.turning
                noise = variance * z**2 / (2 * model.p * q)
                dq_dt = a.dq_dt(omega, q, q, jnp.ones_like(q)) + noise
                if model.turning is not None:
                    dq_dt = dq_dt - model.turning * q
                return dq_dt, a.dlam_dt(self.rule, lam), a.schedule_drift

            now = (state.q, state.lam, state.schedule)
            q, lam, schedule = self.integrator.solve(field, now, begin, end)
            a = limit(end, (q, lam, schedule))
            return _State(q, lam, schedule, a.a1 / a.s2)

        return jax.vmap(one_path)(jnp.asarray(_Z, model.omega.dtype), state)

    def observe(self, state: _State, time: Real) -> tuple[_State, tuple[Array, ...]]:
        return state, (state.q, state.lam, state.gain)

    def switch(
        self, old: SpikedModel, new: SpikedModel, state: _State, time: Real, phase: Count
    ) -> _State:
        # The overlap with the new spike is independent of the path so far: every node goes
        # on from the mean state, with an overlap z/sqrt(p).
        mean = lambda a: jnp.full_like(a, a @ jnp.asarray(_WEIGHTS, a.dtype))
        return _with_new_overlaps(jax.tree.map(mean, state), new.p)


def _with_new_overlaps(state: _State, p: Dimension) -> _State:
    """Returns the state with overlaps of the variance 1/p, as a spike has that is
    independent of the estimate."""
    overlaps = jnp.asarray(_Z, state.q.dtype) / jnp.sqrt(p)
    return eqx.tree_at(lambda s: s.q, state, overlaps)
