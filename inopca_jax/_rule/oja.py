from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp

from .._observables import Sample
from .._schedule import AbstractSchedule
from .._types import Real
from .base import AbstractRule, Rates, as_schedule


class Oja(AbstractRule):
    """A gradient step, `eq:oja_gradient_step`, then `eq:oja_projection_step`."""

    tau: AbstractSchedule = eqx.field(converter=as_schedule, default=0.5)
    projects: ClassVar[bool] = True

    def rates(self, sample: Sample, tau: Real) -> Rates:
        return Rates(gain=tau, decay=jnp.zeros_like(tau))
