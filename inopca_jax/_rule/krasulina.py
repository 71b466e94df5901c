from typing import ClassVar

import equinox as eqx

from .._observables import Observables
from .._schedule import AbstractSchedule
from .._types import Real
from .base import AbstractRule, Rates, as_schedule


class Krasulina(AbstractRule):
    """Krasulina's method: Oja's gradient made orthogonal to the estimate.

    Gain `tau`, decay `tau S^2`. Its norm is not controlled, and grows slowly.

    **Arguments:**

    - `tau`: the learning rate, a number or a schedule.

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> ino.Krasulina(ino.Harmonic(2.0))
    Krasulina(tau=Harmonic(c=2.0, t0=1.0, k0=0.0))
    >>> round(float(ino.critical_snr(ino.Krasulina(tau=0.5))), 3)
    0.25
    ```
    """

    tau: AbstractSchedule = eqx.field(converter=as_schedule, default=0.5)
    projects: ClassVar[bool] = False

    def rates(self, observables: Observables, tau: Real) -> Rates:
        # This decay cancels the component of the step along x: the step is orthogonal to x,
        # and |x| grows at second order only.
        return Rates(gain=tau, decay=tau * observables.s2)
