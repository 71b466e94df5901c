"""What a tuned algorithm should be good at."""

import abc
from collections.abc import Callable
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Integer

from .._check import Checked, as_number, positive, require, require_instance
from .._config import Config
from .._order_parameters import best_overlap, fluctuations, mean_field, steady_state
from .._pickling import Pickled
from .._schedule import Interpolated
from .._start import panels
from .._types import Real, real

_STOPS = 101

Overlap = Callable[[Float[Array, " times"]], Float[Array, " times"]]
"""The size of the overlap as a function of the time."""


class AbstractObjective(Pickled):
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

    def value(self, config: Checked[Config], **options) -> Real:
        require_instance("config", config, Config)
        path = lambda ts: _overlap(config, ts, **options)
        return self.judge(path, real(config.ts[-1]))

    def bound(self, config: Checked[Config]) -> Real:
        require_instance("config", config, Config)
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

    level: Real = eqx.field(converter=as_number("level"))
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
        # In this order, a path that cannot be computed to its end, where it is NaN, is NaN.
        return jnp.where(last >= self.level, _lagrange(q, t, self.level), late)

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

    within: Real = eqx.field(converter=as_number("within"))
    fraction: Real = eqx.field(converter=as_number("fraction"), default=0.95)
    larger_is_better: ClassVar[bool] = True

    def __check_init__(self):
        require("within", self.within, positive, "pass a positive, finite time")
        require("fraction", self.fraction, lambda x: (x > 0) & (x < 1), "pass a share")

    def value(self, config: Checked[Config], **options) -> Real:
        require_instance("config", config, Config)
        steady, _ = steady_state(config)
        there = _overlap(config, real(self.within)[None], **options)[0]
        missing = jax.nn.relu(self.fraction * steady - there)
        return steady - 1e3 * missing**2

    def bound(self, config: Checked[Config]) -> Real:
        require_instance("config", config, Config)
        there = best_overlap(config, real(self.within)[None])[0]
        return jnp.minimum(there / self.fraction, 1)


class CautiousOverlap(AbstractObjective):
    """What the overlap at the last time exceeds in all but few runs at this p: its
    predicted mean, less `deviations` times its predicted standard deviation."""

    deviations: Real = eqx.field(converter=as_number("deviations"), default=2.0)
    larger_is_better: ClassVar[bool] = True

    def __check_init__(self):
        require("deviations", self.deviations, np.isfinite, "pass a finite number")

    def value(self, config: Checked[Config], **options) -> Real:
        require_instance("config", config, Config)
        config, rows = _stopping(config, real(config.ts[-1:]))
        last = fluctuations(config, **options).abs()
        assert last.q_shift is not None
        assert last.q_std is not None
        return (last.q + last.q_shift - self.deviations * last.q_std)[rows[0]]

    def bound(self, config: Checked[Config]) -> Real:
        require_instance("config", config, Config)
        return best_overlap(config, real(config.ts[-1:]))[0]


def _stopping(
    config: Config, ts: Float[Array, " times"]
) -> tuple[Config, Integer[Array, " times"]]:
    """The config with `ts` among its times, and where they are; if a schedule has knots,
    with many more.

    A solver's steps are as long as the path allows, and at rest that is as long as one
    likes: too long for what a single knot does to the path, which its derivative is about.
    So it is made to stop at the knots, and often in between.
    """
    schedule = config.rule.tau
    if not isinstance(schedule, Interpolated):
        return _at(config, ts), jnp.arange(ts.size)
    end = jnp.max(ts)
    knots = lax.stop_gradient(schedule.ts)
    knots = jnp.where(knots < end, knots, end)
    between = end * jnp.linspace(0, 1, _STOPS, dtype=end.dtype)
    stops = jnp.concatenate([ts, between, knots])
    order = jnp.argsort(stops)
    return _at(config, stops[order]), jnp.argsort(order)[: ts.size]


def _overlap(
    config: Config, ts: Float[Array, " times"], **options
) -> Float[Array, " times"]:
    config, rows = _stopping(config, ts)
    return jnp.abs(mean_field(config, **options).q[rows])


def _at(config: Config, ts: Float[Array, " times"]) -> Config:
    return eqx.tree_at(lambda c: c.ts, config, ts)


def _lagrange(x: Float[Array, " n"], y: Float[Array, " n"], at: Real) -> Real:
    """The polynomial through the points, at `at`."""
    apart = x[:, None] - x[None, :] + jnp.eye(len(x), dtype=x.dtype)
    others = jnp.where(jnp.eye(len(x), dtype=bool), 1, at - x[None, :])
    return jnp.sum(y * jnp.prod(others / apart, axis=1))
