from typing import ClassVar

import equinox as eqx

from .._observables import Sample
from .._schedule import AbstractSchedule
from .._types import Real
from .base import AbstractRule, Rates, as_schedule


class InoPCA(AbstractRule):
    """Implicitly normalised online PCA, `eq:dynamics_update`.

    The pull is divided by the norm, so the norm sets the effective learning rate
    `tau/lam`, and settles at the leading eigenvalue `omega + 1`.
    """

    tau: AbstractSchedule = eqx.field(converter=as_schedule, default=0.5)
    projects: ClassVar[bool] = False

    def rates(self, sample: Sample, tau: Real) -> Rates:
        return Rates(gain=tau / sample.lam, decay=tau)
