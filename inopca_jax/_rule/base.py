"""The one idea: a rule turns a few scalars into a gain and a decay."""

import abc
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import jax.numpy as jnp

from .._observables import Hidden, Sample
from .._pickling import Pickled
from .._schedule import AbstractSchedule, Constant
from .._types import Memory, Real

if TYPE_CHECKING:
    from typing import ClassVar as AbstractClassVar
else:
    from equinox import AbstractClassVar


class Rates(Pickled):
    """`x' = (1 - decay/p) x + (gain/p) (y.x) y`."""

    gain: Real
    decay: Real


class AbstractRule(Pickled):
    """How hard to pull towards the sample, how much to shrink.

    `projects` says whether the estimate is brought back to `|x| = sqrt(p)` after
    every step, and before the first.
    """

    tau: eqx.AbstractVar[AbstractSchedule]
    projects: AbstractClassVar[bool]

    @abc.abstractmethod
    def rates(self, sample: Sample, tau: Real) -> Rates:
        """The gain and the decay at this sample."""


def as_schedule(tau: Any) -> AbstractSchedule:
    """A number is a constant learning rate."""
    return tau if isinstance(tau, AbstractSchedule) else Constant(tau)


def learn(
    rule: AbstractRule, sample: Sample, q: Real, omega: Real, memory: Memory
) -> tuple[Rates, Memory]:
    """One sample seen by the rule and its schedule, in this order: the memory moves,
    the schedule names `tau`, the rule names its rates."""
    change = rule.tau.drift(sample, memory)
    memory = jax.tree.map(lambda m, d: m + d / sample.p, memory, change)
    return rates_at(rule, sample, q, omega, memory), memory


def rates_at(
    rule: AbstractRule, sample: Sample, q: Real, omega: Real, memory: Memory
) -> Rates:
    """The rates while the memory stands still, which is all that the limit needs."""
    unit_gain = rule.rates(sample, jnp.ones_like(sample.lam)).gain
    hidden = Hidden(q=q, omega=omega, unit_gain=unit_gain)
    return rule.rates(sample, rule.tau.tau(sample, memory, hidden))
