"""What a tuned algorithm should be good at."""

import abc
from collections.abc import Callable
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from .._check import positive, require, require_instance
from .._config import Config
from .._model import SpikedModel
from .._schedule import Interpolated
from .._start import panels
from .._theory import best_overlap, fluctuations, mean_field, steady_state
from .._types import Real, real, scalar

_STOPS = 101

Overlap = Callable[[Float[Array, " times"]], Float[Array, " times"]]
"""The size of the overlap as a function of the time."""


class AbstractObjective(eqx.Module):
    """A number that a config is judged by, over the times from 0 to its last one."""

    larger_is_better: ClassVar[bool]

    @abc.abstractmethod
    def value(self, config: Config, **options) -> Real:
        """The number, differentiable in every leaf. `options` are those of `mean_field`."""

    @abc.abstractmethod
    def bound(self, config: Config) -> Real:
        """The best value that any gain could have from the same start.

        The gain that raises the overlap fastest (`eq:optimal_nu_t`) has a path that is
        above every other one at all times. After a change of the spike this is no longer
        so, and the value of that gain is a reference instead of a bound.
        """

    def require_reachable(self, config: Config) -> None:
        """Refuses what no gain could reach, with the bound."""


class AbstractPathObjective(AbstractObjective):
    """An objective that looks at the path of the overlap and nothing else."""

    @abc.abstractmethod
    def judge(self, overlap: Overlap, end: Real) -> Real:
        """The value of a path on [0, end]."""

    def value(self, config: Config, **options) -> Real:
        path = lambda ts: jnp.abs(_watched(config, ts, **options))
        return self.judge(path, real(config.ts[-1]))

    def bound(self, config: Config) -> Real:
        return self.judge(lambda ts: best_overlap(config, ts), real(config.ts[-1]))


class FinalOverlap(AbstractPathObjective):
    """The overlap at the last time."""

    larger_is_better: ClassVar[bool] = True

    def judge(self, overlap: Overlap, end: Real) -> Real:
        return overlap(end[None])[0]


class Area(AbstractPathObjective):
    """The area under `1 - q^2`: what the estimate misses on its way."""

    larger_is_better: ClassVar[bool] = False

    def judge(self, overlap: Overlap, end: Real) -> Real:
        # Panels that widen with time, as paths flatten.
        s, weights = panels(jnp.zeros_like(end), jnp.ones_like(end), 8)
        return jnp.sum(2 * s * weights * (1 - overlap(end * s**2) ** 2)) * end


class TimeToReach(AbstractPathObjective):
    """The time at which the overlap first reaches `level`.

    A path that does not reach it by the last time counts as later than that, by how far
    away it ends, so that there is a slope to follow.
    """

    level: Real = eqx.field(converter=scalar)
    larger_is_better: ClassVar[bool] = False

    def __check_init__(self):
        require("level", self.level, lambda x: (x > 0) & (x < 1), "pass 0 < level < 1")

    def judge(self, overlap: Overlap, end: Real) -> Real:
        coarse = end * jnp.linspace(0, 1, 97, dtype=end.dtype)
        seen = lax.stop_gradient(overlap(coarse))
        i = jnp.clip(jnp.argmax(seen >= self.level), 1, 96)
        # Four times about the crossing, by which the time is a smooth function of the
        # overlap: its error is that of cubic interpolation on an interval of end/960.
        near = coarse[i - 1] + (coarse[i] - coarse[i - 1]) * jnp.linspace(
            0, 1, 11, dtype=end.dtype
        )
        q = overlap(jnp.append(near, end))
        q, last = q[:-1], q[-1]
        j = jnp.clip(jnp.argmax(q >= self.level) - 2, 0, 7)
        q, t = lax.dynamic_slice(q, (j,), (4,)), lax.dynamic_slice(near, (j,), (4,))
        late = end * (
            1 + jnp.log(self.level / jnp.maximum(last, jnp.finfo(last.dtype).tiny))
        )
        return jnp.where(last < self.level, late, _lagrange(q, t, self.level))

    def require_reachable(self, config: Config) -> None:
        level, end = float(self.level), float(config.ts[-1])
        begin, best = best_overlap(config, real([0.0, end])).tolist()
        if level <= begin:
            raise ValueError(
                f"level = {level:.6g} is not allowed: an overlap of {begin:.6g} is there "
                "from the start. Pass a higher level."
            )
        if level >= best:
            raise ValueError(
                f"level = {level:.6g} cannot be reached by t = {end:g}: no gain has an "
                f"overlap above {best:.6g} there. Pass a lower level or later ts."
            )


class SteadyOverlap(AbstractObjective):
    """The steady state's overlap, of which the share `fraction` has to be there by the
    time `within`.

    A small rate has a better steady state and takes longer: without the condition there
    is nothing to choose. It is held by a penalty, to about a thousandth.
    """

    within: Real = eqx.field(converter=scalar)
    fraction: Real = eqx.field(converter=scalar, default=0.95)
    larger_is_better: ClassVar[bool] = True

    def __check_init__(self):
        require("within", self.within, positive, "pass a positive, finite time")
        require("fraction", self.fraction, lambda x: (x > 0) & (x < 1), "pass a share")

    def value(self, config: Config, **options) -> Real:
        steady, _ = steady_state(config)
        then = mean_field(_at(config, real(self.within)[None]), **options)
        missing = jax.nn.relu(self.fraction * steady - jnp.abs(then.q[0]))
        return steady - 1e3 * missing**2

    def bound(self, config: Config) -> Real:
        there = best_overlap(config, real(self.within)[None])[0]
        return jnp.minimum(there / self.fraction, 1)


class CautiousOverlap(AbstractObjective):
    """What the overlap at the last time exceeds in all but few runs at this p: its
    predicted mean, less `deviations` times its predicted standard deviation."""

    deviations: Real = eqx.field(converter=scalar, default=2.0)
    larger_is_better: ClassVar[bool] = True

    def __check_init__(self):
        require("deviations", self.deviations, np.isfinite, "pass a finite number")

    def value(self, config: Config, **options) -> Real:
        last = fluctuations(_at(config, real(config.ts[-1:])), **options).abs()
        assert last.q_shift is not None
        assert last.q_std is not None
        return (last.q + last.q_shift - self.deviations * last.q_std)[0]

    def bound(self, config: Config) -> Real:
        return best_overlap(config, real(config.ts[-1:]))[0]


class AbstractRobust(AbstractObjective):
    """An objective for a signal-to-noise ratio that is not known: by how much of the best
    possible value the config falls short, at several of them."""

    objective: eqx.AbstractVar[AbstractObjective]
    omegas: eqx.AbstractVar[Float[Array, " omegas"]]

    @abc.abstractmethod
    def over(self, shortfalls: Float[Array, " omegas"]) -> Real:
        """One number for all of them."""

    def value(self, config: Config, **options) -> Real:
        return self.over(self.shortfalls(config, **options))

    def shortfalls(self, config: Config, **options) -> Float[Array, " omegas"]:
        """`|value/bound - 1|` at each of `omegas`."""

        def one(omega: Real) -> Real:
            there = eqx.tree_at(lambda c: c.model.omega, config, omega)
            value = self.objective.value(there, **options)
            return jnp.abs(value / self.objective.bound(there) - 1)

        return jax.vmap(one)(self.omegas)

    def bound(self, config: Config) -> Real:
        return jnp.zeros(())

    def require_reachable(self, config: Config) -> None:
        require_instance("model", config.model, SpikedModel)
        for omega in self.omegas:
            there = eqx.tree_at(lambda c: c.model.omega, config, omega)
            self.objective.require_reachable(there)


class WorstCase(AbstractRobust):
    """The largest shortfall over the signal-to-noise ratios `omegas`."""

    objective: AbstractObjective
    omegas: Float[Array, " omegas"] = eqx.field(converter=real)
    larger_is_better: ClassVar[bool] = False

    def __check_init__(self):
        _require_omegas(self.omegas)

    def over(self, shortfalls: Float[Array, " omegas"]) -> Real:
        # A norm of a high power instead of the maximum, which has a kink where two
        # shortfalls are the same: just where it is smallest.
        most = lax.stop_gradient(jnp.max(shortfalls))
        scaled = shortfalls / jnp.where(most > 0, most, 1)
        return most * jnp.mean(scaled**64) ** (1 / 64)


class Average(AbstractRobust):
    """The mean shortfall over the signal-to-noise ratios `omegas`."""

    objective: AbstractObjective
    omegas: Float[Array, " omegas"] = eqx.field(converter=real)
    larger_is_better: ClassVar[bool] = False

    def __check_init__(self):
        _require_omegas(self.omegas)

    def over(self, shortfalls: Float[Array, " omegas"]) -> Real:
        return jnp.mean(shortfalls)


def _watched(
    config: Config, ts: Float[Array, " times"], **options
) -> Float[Array, " times"]:
    """The overlap at `ts`, by a solver that stops often on the way if a schedule has knots.

    Its steps are as long as the path allows, and at rest that is as long as one likes: too
    long for what a single knot does to the path, which its derivative is about.
    """
    schedule, end = config.rule.tau, config.ts[-1]
    if not isinstance(schedule, Interpolated):
        return mean_field(_at(config, ts), **options).q
    knots = lax.stop_gradient(schedule.ts)
    knots = jnp.where(knots < end, knots, end)
    stops = jnp.concatenate([ts, real(end * np.linspace(0, 1, _STOPS)), knots])
    order = jnp.argsort(stops)
    q = mean_field(_at(config, stops[order]), **options).q
    return q[jnp.argsort(order)[: ts.size]]


def _at(config: Config, ts: Float[Array, " times"]) -> Config:
    return eqx.tree_at(lambda c: c.ts, config, ts)


def _lagrange(x: Float[Array, " n"], y: Float[Array, " n"], at: Real) -> Real:
    """The polynomial through the points, at `at`."""
    apart = x[:, None] - x[None, :] + jnp.eye(len(x), dtype=x.dtype)
    others = jnp.where(jnp.eye(len(x), dtype=bool), 1, at - x[None, :])
    return jnp.sum(y * jnp.prod(others / apart, axis=1))


def _require_omegas(omegas: Float[Array, " omegas"]) -> None:
    if omegas.ndim != 1 or not omegas.size:
        raise ValueError(
            f"omegas of shape {omegas.shape} is not allowed: pass one axis of them."
        )
    require("omegas", omegas, positive, "without a signal there is nothing to tune")
