"""The path of the mean field through all segments of a run."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Integer

from .._check import is_known
from .._config import Config, rule_of_one
from .._model import SpikedModel
from .._numerics import cast
from .._rule import AbstractRule, initial_state
from .._start import AbstractStart
from .._timeline import AbstractProcess, evolve, segments
from .._types import Count, Real, ScheduleState, Times
from .initial import start_moments
from .integrate import Integrator
from .limit import limit_coefficients


class _State(eqx.Module):
    """The state of the mean field.

    - `qs`: the overlaps of `x` with two or three directions. They are the spike; the vector
      of ones, from which follows the overlap with the next spike, whose entries are
      independent of `x`; and, with `with_shrink`, a direction orthogonal to both, with an
      overlap that is scaled to 1 at the beginning of the segment.
    - `lam`: the norm.
    - `schedule`: the schedule's state.
    - `spike_mean`: the mean entry of the spike.
    - `lam_begin`: the norm at the beginning of the segment.
    """

    qs: Float[Array, " directions"]
    lam: Real
    schedule: ScheduleState
    spike_mean: Real
    lam_begin: Real

    def shrink(self) -> Real:
        """Returns the factor by which an entry's dependence on its value at the beginning
        of the segment has shrunk; NaN without the third direction."""
        nan = jnp.full_like(self.lam, jnp.nan)
        q_orthogonal = self.qs[2] if self.qs.size == 3 else nan
        return q_orthogonal * self.lam / self.lam_begin


class MeanField(AbstractProcess):
    """The mean-field ODE as a process."""

    rule: AbstractRule
    integrator: Integrator
    with_shrink: bool = eqx.field(static=True)

    def init(self, model: SpikedModel, start: AbstractStart) -> _State:
        q0, lam0 = start_moments(self.rule, model, start)
        spike_mean = model.spike.mean().astype(q0.dtype)
        start_norm = start.moments(model.spike)[1].astype(q0.dtype)
        ones = start.mean(model.spike).astype(q0.dtype) / start_norm
        schedule = initial_state(self.rule, jnp.asarray(model.p, q0.dtype))
        return _State(self._qs(q0, ones), lam0, schedule, spike_mean, lam0)

    def advance(self, model: SpikedModel, state: _State, begin: Real, end: Real) -> _State:
        rule, mean = self.rule, state.spike_mean
        omega, turning = model.effective_omega, model.turning
        # The overlaps of the same directions with the spike.
        rho = self._qs(jnp.ones_like(mean), mean, jnp.zeros_like(mean))
        first = self._qs(jnp.ones_like(mean), jnp.zeros_like(mean), jnp.zeros_like(mean))

        def field(t, y):
            qs, lam, schedule = y
            limit = limit_coefficients(rule, omega, model.p, t, qs[0], lam, schedule)
            if turning is None:
                dqs_dt = limit.dq_dt(omega, qs[0], qs, rho)
            else:
                # The spike leaves behind what it had in common with the vector of ones.
                mean_now = mean * jnp.exp(-turning * (t - begin))
                rho_now = self._qs(first[0], mean_now, jnp.zeros_like(mean))
                dqs_dt = limit.dq_dt(omega, qs[0], qs, rho_now) - turning * first * qs
            return dqs_dt, limit.dlam_dt(rule, lam), limit.schedule_drift

        y = (state.qs, state.lam, state.schedule)
        qs, lam, schedule = self.integrator.solve(field, y, begin, end)
        if turning is not None:
            mean = mean * jnp.exp(-turning * (end - begin))
        return _State(qs, lam, schedule, mean, state.lam_begin)

    def observe(self, state: _State, time: Real) -> tuple[_State, tuple[Real, Real, Real]]:
        return state, (state.qs[0], state.lam, state.shrink())

    def switch(
        self, old: SpikedModel, new: SpikedModel, state: _State, time: Real, phase: Count
    ) -> _State:
        mean = new.spike.mean().astype(state.lam.dtype)
        qs = self._qs(mean * state.qs[1], state.qs[1])
        return _State(qs, state.lam, state.schedule, mean, state.lam)

    def _qs(self, spike: Real, ones: Real, orthogonal: Real | None = None) -> Array:
        orthogonal = jnp.ones_like(spike) if orthogonal is None else orthogonal
        return jnp.stack([spike, ones, orthogonal][: 3 if self.with_shrink else 2])


class Path(eqx.Module):
    """The overlap with the spike in force and the norm, at some times.

    **Arguments:**

    - `q`, `lam`: the path.
    - `shrink`: the factor by which an entry's dependence on its value at the beginning of
      its segment has shrunk.
    - `begins`: `(q, lam)` at the beginning of every segment.
    - `ends`: `(q, lam, shrink)` at the end of every segment.
    - `within`: for every segment, which of the times are in it.
    """

    q: Float[Array, " times"]
    lam: Float[Array, " times"]
    shrink: Float[Array, " times"]
    begins: tuple[tuple[Real, Real], ...]
    ends: tuple[tuple[Real, Real, Real], ...]
    within: tuple[Bool[Array, " times"], ...]

    def rows(self, index: Integer[Array | np.ndarray, " some"]) -> "Path":
        """Returns the path at some of its times."""
        q, lam, shrink, within = jax.tree.map(
            lambda a: a[index], (self.q, self.lam, self.shrink, self.within)
        )
        return Path(q, lam, shrink, self.begins, self.ends, within)


@eqx.filter_jit
def follow(
    config: Config, ts: Times, integrator: Integrator, with_shrink: bool = False
) -> Path:
    """Returns the path at the times `ts`; its `shrink` is NaN unless `with_shrink`."""
    config = cast(config, jnp.result_type(float))
    run_segments = segments(config, ts)
    run = evolve(
        MeanField(rule_of_one(config), integrator, with_shrink), config, run_segments
    )
    q, lam, shrink = run.observations
    return Path(
        q,
        lam,
        shrink,
        tuple((state.qs[0], state.lam) for state in run.begins),
        tuple((state.qs[0], state.lam, state.shrink()) for state in run.ends),
        tuple(jnp.asarray(segment.observed) for segment in run_segments),
    )


def known_times(config: Config) -> tuple[Any, Any]:
    """Returns the times of observation and of the switches, without their derivatives.

    Under a `grad` they are traced, although their values are known.
    """
    times = (config.ts, config.model.changes())
    return times if is_known(*times) else lax.stop_gradient(times)
