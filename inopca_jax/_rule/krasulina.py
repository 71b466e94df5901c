from typing import ClassVar

import equinox as eqx

from .._observables import Sample
from .._schedule import AbstractSchedule
from .._types import Real
from .base import AbstractRule, Rates, as_schedule


class Krasulina(AbstractRule):
    """Oja's gradient made orthogonal to the estimate, so that its norm only drifts."""

    tau: AbstractSchedule = eqx.field(converter=as_schedule, default=0.5)
    projects: ClassVar[bool] = False

    def rates(self, sample: Sample, tau: Real) -> Rates:
        # `s2` in the decay cancels the pull along `x` itself: what is left of the
        # step is orthogonal to `x`, and |x| grows at second order only.
        return Rates(gain=tau, decay=tau * sample.s2)
