"""Objectives: the numbers that tuning maximises or minimises."""

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
from .._config import Config, require_single
from .._model import SpikedModel
from .._module import PublicModule
from .._numerics import gauss_legendre, root
from .._order_parameters import (
    best_overlap,
    fluctuations,
    mean_field,
    oracle_overlap,
    steady_state,
)
from .._order_parameters.components_start import strongest_overlaps
from .._rule import AbstractRule
from .._schedule import Interpolated
from .._start import WarmStart
from .._trajectory import Trajectory
from .._types import Real, real

OverlapPath = Callable[[Float[Array, " times"]], Float[Array, " times"]]
"""The absolute overlap as a function of the time."""


class AbstractObjective(PublicModule):
    """A number by which a config is judged, over the times from 0 to its last one.

    An objective of your own defines `larger_is_better`, `value` and `bound`.

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> from typing import ClassVar
    >>> class SteadyNorm(ino.AbstractObjective):
    ...     larger_is_better: ClassVar[bool] = True
    ...     def value(self, config, **options):
    ...         return ino.steady_state(config)[1]
    ...     def bound(self, config):
    ...         return config.model.omega + 1
    ...
    >>> round(float(SteadyNorm().value(ino.Config())), 3)
    2.0
    ```
    """

    larger_is_better: ClassVar[bool]

    @abc.abstractmethod
    def value(self, config: Config, **options) -> Real:
        """Returns the value of the objective, differentiable in every leaf of the config.

        **Arguments:**

        - `config`: what to judge.
        - `options`: passed on to `mean_field`.
        """

    @abc.abstractmethod
    def bound(self, config: Config) -> Real:
        """Returns the best value that any gain could have from the same start.

        The gain that raises the overlap fastest (`eq:optimal_nu_t`) has the largest overlap
        at all times. After a switch of the spike this is no longer so: there the value of
        that gain is a reference instead of a bound.
        """


class AbstractPathObjective(AbstractObjective):
    """An objective that depends on the overlap as a function of time and nothing else.

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> from typing import ClassVar
    >>> class HalfwayOverlap(ino.AbstractPathObjective):
    ...     larger_is_better: ClassVar[bool] = True
    ...     def judge(self, overlap, end):
    ...         return overlap(end[None] / 2)[0]
    ...
    >>> round(float(HalfwayOverlap().value(ino.Config(ts=[0.0, 100.0]))), 2)
    0.88
    ```
    """

    @abc.abstractmethod
    def judge(self, overlap: OverlapPath, end: Real) -> Real:
        """Returns the value of a path on [0, end].

        **Arguments:**

        - `overlap`: maps times to absolute overlaps, arrays of shape (times,).
        - `end`: the last time.
        """

    def value(self, config: Checked[Config], **options) -> Real:
        require_instance("config", config, Config)
        require_single(config, type(self).__name__)
        path = lambda ts: _overlap(config, ts, **options)
        return self.judge(path, real(config.ts[-1]))

    def bound(self, config: Checked[Config]) -> Real:
        require_instance("config", config, Config)
        require_single(config, type(self).__name__)
        return self.judge(lambda ts: best_overlap(config, ts), real(config.ts[-1]))


class FinalOverlap(AbstractPathObjective):
    """The absolute overlap at the last time, to be maximised.

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> config = ino.Config(ts=[0.0, 50.0])
    >>> round(float(ino.FinalOverlap().value(config)), 3)
    0.882
    ```
    """

    larger_is_better: ClassVar[bool] = True

    def judge(self, overlap: OverlapPath, end: Real) -> Real:
        return overlap(end[None])[0]


class FinalDistance(AbstractObjective):
    """The Grassmann distance at the last time, of the span of the estimates from that of
    the strongest spikes, to be minimised.

    It is for several components; of one it is the angle between estimate and spike. The
    bound is that of components which follow the best gain of their own spike each. If a
    start overlaps with the spikes of other components too, it is a reference instead.

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> model = ino.SpikedModel(p=2_000, omega=[4.0, 2.0])
    >>> config = ino.Config(model=model, ts=[0.0, 20.0], components=2)
    >>> distance = ino.FinalDistance()
    >>> bool(distance.bound(config) < distance.value(config))
    True
    ```
    """

    larger_is_better: ClassVar[bool] = False

    def value(self, config: Checked[Config], **options) -> Real:
        require_instance("config", config, Config)
        config, rows = _with_times(config, real(config.ts[-1:]))
        path = mean_field(config, **options)
        if isinstance(path, Trajectory):
            return _angle(jnp.abs(path.q[rows[0]]))
        return path.grassmann_distance()[rows[0]]

    def bound(self, config: Checked[Config]) -> Real:
        require_instance("config", config, Config)
        end = real(config.ts[-1:])
        if config.is_single and isinstance(config.rule, AbstractRule):
            return _angle(best_overlap(config, end)[0])
        model, *later = config.model.phases()
        if later:
            raise ValueError(
                "model = Switching of several spikes is not allowed with FinalDistance: "
                "after a switch the mean field has no overlaps. Pass a SpikedModel."
            )
        overlaps = strongest_overlaps(config.rule, model, config.start, config.components)
        own = jnp.diagonal(overlaps)
        omegas = model.target_omegas(config.components)[: own.size]
        if model.turning is None:
            best = oracle_overlap(omegas, own, end)
        else:
            alone = [
                Config(
                    model=SpikedModel(model.p, omega, turning=model.turning),
                    start=WarmStart(q0),
                )
                for omega, q0 in zip(omegas, own, strict=True)
            ]
            best = jnp.concatenate([best_overlap(one, end) for one in alone])
        return root(jnp.sum(_angle(jnp.abs(best)) ** 2))


def _angle(overlap: Array) -> Array:
    return jnp.arccos(jnp.clip(overlap, 0, 1))


class Area(AbstractPathObjective):
    """The integral of `1 - q^2` over time, to be minimised.

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> config = ino.Config(ts=[0.0, 50.0])
    >>> area = ino.Area()
    >>> bool(area.bound(config) < area.value(config))
    True
    ```
    """

    larger_is_better: ClassVar[bool] = False

    def judge(self, overlap: OverlapPath, end: Real) -> Real:
        # With t = end s^2, panels are narrow at early times, when paths are steep.
        s, weights = gauss_legendre(jnp.zeros_like(end), jnp.ones_like(end), 8)
        return jnp.sum(2 * s * weights * (1 - overlap(end * s**2) ** 2)) * end


class TimeToReach(AbstractPathObjective):
    """The time at which the absolute overlap first reaches a level, to be minimised.

    A path that does not reach it by the last time has a value above that time, which grows
    with the distance of its last overlap from the level, so that there is a gradient.

    **Arguments:**

    - `level`: a number in (0, 1).

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> config = ino.Config(ts=[0.0, 50.0])
    >>> round(float(ino.TimeToReach(level=0.5).value(config)), 1)
    5.5
    ```
    """

    level: Real = eqx.field(converter=as_number("level"))
    larger_is_better: ClassVar[bool] = False

    def __check_init__(self):
        require("level", self.level, lambda x: (x > 0) & (x < 1), "pass 0 < level < 1")

    def judge(self, overlap: OverlapPath, end: Real) -> Real:
        coarse = end * jnp.linspace(0, 1, 97, dtype=end.dtype)
        i = jnp.argmax(lax.stop_gradient(overlap(coarse)) >= self.level)
        i = jnp.clip(i, 1, 96)
        # The time of the crossing is interpolated as a function of the overlap, through
        # four points about it: the error is that of cubic interpolation on an interval of
        # end/960.
        fine = coarse[i - 1] + (coarse[i] - coarse[i - 1]) * jnp.linspace(
            0, 1, 11, dtype=end.dtype
        )
        q = overlap(jnp.append(fine, end))
        q, last = q[:-1], q[-1]
        j = jnp.clip(jnp.argmax(q >= self.level) - 2, 0, 7)
        q, t = lax.dynamic_slice(q, (j,), (4,)), lax.dynamic_slice(fine, (j,), (4,))
        late = end * (
            1 + jnp.log(self.level / jnp.maximum(last, jnp.finfo(last.dtype).tiny))
        )
        # A comparison with NaN is false: a path that ends with NaN gets `late`, also NaN.
        return jnp.where(last >= self.level, _lagrange(q, t, self.level), late)

    def require_reachable(self, config: Config) -> None:
        """Raises `ValueError` if no gain reaches the level, or if the start is above it."""
        level, end = float(self.level), float(config.ts[-1])
        begin, best = best_overlap(config, real([0.0, end])).tolist()
        if level <= begin:
            raise ValueError(
                f"level = {level:.6g} is not allowed: the start's overlap is {begin:.6g}, "
                "so that the level is reached at t = 0. Pass a higher level."
            )
        if level >= best:
            raise ValueError(
                f"level = {level:.6g} cannot be reached by t = {end:g}: no gain has an "
                f"overlap above {best:.6g} there. Pass a lower level or later ts."
            )


class SteadyOverlap(AbstractObjective):
    """The overlap of the steady state, to be maximised under a condition.

    The condition is that the overlap reaches the part `fraction` of it by the time
    `within`. Without it the best learning rate would be zero: a smaller rate has a better
    steady state and takes longer. A penalty enforces it, to about a thousandth.

    **Arguments:**

    - `within`: a positive time.
    - `fraction`: a number in (0, 1).

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> config = ino.Config(ts=[0.0, 50.0])
    >>> round(float(ino.SteadyOverlap(within=40.0).value(config)), 2)
    0.88
    ```
    """

    within: Real = eqx.field(converter=as_number("within"))
    fraction: Real = eqx.field(converter=as_number("fraction"), default=0.95)
    larger_is_better: ClassVar[bool] = True

    def __check_init__(self):
        require("within", self.within, positive, "pass a positive, finite time")
        remedy = "pass 0 < fraction < 1"
        require("fraction", self.fraction, lambda x: (x > 0) & (x < 1), remedy)

    def value(self, config: Checked[Config], **options) -> Real:
        require_instance("config", config, Config)
        require_single(config, type(self).__name__)
        steady, _ = steady_state(config)
        reached = _overlap(config, real(self.within)[None], **options)[0]
        missing = jax.nn.relu(self.fraction * steady - reached)
        return steady - 1e3 * missing**2

    def bound(self, config: Checked[Config]) -> Real:
        require_instance("config", config, Config)
        require_single(config, type(self).__name__)
        reached = best_overlap(config, real(self.within)[None])[0]
        return jnp.minimum(reached / self.fraction, 1)


class CautiousOverlap(AbstractObjective):
    """A lower confidence limit of the overlap at the last time, to be maximised.

    It is the overlap's predicted mean at this p, minus `deviations` times its predicted
    standard deviation.

    **Arguments:**

    - `deviations`: a finite number.

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> config = ino.Config(ts=[0.0, 50.0])
    >>> cautious = ino.CautiousOverlap(deviations=2.0)
    >>> bool(cautious.value(config) < ino.FinalOverlap().value(config))
    True
    ```
    """

    deviations: Real = eqx.field(converter=as_number("deviations"), default=2.0)
    larger_is_better: ClassVar[bool] = True

    def __check_init__(self):
        require("deviations", self.deviations, np.isfinite, "pass a finite number")

    def value(self, config: Checked[Config], **options) -> Real:
        require_instance("config", config, Config)
        require_single(config, type(self).__name__)
        config, rows = _with_times(config, real(config.ts[-1:]))
        predicted = fluctuations(config, **options).abs()
        assert predicted.q_shift is not None
        assert predicted.q_std is not None
        mean = predicted.q + predicted.q_shift
        return (mean - self.deviations * predicted.q_std)[rows[0]]

    def bound(self, config: Checked[Config]) -> Real:
        require_instance("config", config, Config)
        require_single(config, type(self).__name__)
        return best_overlap(config, real(config.ts[-1:]))[0]


# The intervals that an `Interpolated` schedule is integrated in, besides its knots.
_INTERVALS = 100


def _with_times(
    config: Config, ts: Float[Array, " times"]
) -> tuple[Config, Integer[Array, " times"]]:
    """Returns the config with `ts` among its times, and their indices.

    If the schedule is `Interpolated`, its knots and more times are added. An adaptive
    solver takes long steps where the path is flat, too long to resolve the effect of a
    single knot, and with it the derivative with respect to that knot.
    """
    schedule = config.rule.tau
    if not isinstance(schedule, Interpolated):
        return _observed_at(config, ts), jnp.arange(ts.size)
    end = jnp.max(ts)
    knots = lax.stop_gradient(schedule.ts)
    knots = jnp.where(knots < end, knots, end)
    equidistant = end * jnp.linspace(0, 1, _INTERVALS + 1, dtype=end.dtype)
    all_ts = jnp.concatenate([ts, equidistant, knots])
    order = jnp.argsort(all_ts)
    return _observed_at(config, all_ts[order]), jnp.argsort(order)[: ts.size]


def _observed_at(config: Config, ts: Float[Array, " times"]) -> Config:
    return eqx.tree_at(lambda c: c.ts, config, ts)


def _overlap(
    config: Config, ts: Float[Array, " times"], **options
) -> Float[Array, " times"]:
    """Returns the absolute overlap of the mean field at `ts`."""
    config, rows = _with_times(config, ts)
    return jnp.abs(mean_field(config, **options).q[rows])


def _lagrange(x: Float[Array, " n"], y: Float[Array, " n"], at: Real) -> Real:
    """Returns the polynomial through the points `(x, y)`, evaluated at `at`."""
    differences = x[:, None] - x[None, :] + jnp.eye(len(x), dtype=x.dtype)
    factors = jnp.where(jnp.eye(len(x), dtype=bool), 1, at - x[None, :])
    return jnp.sum(y * jnp.prod(factors / differences, axis=1))
