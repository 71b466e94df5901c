from typing import ClassVar

import equinox as eqx

from .._observables import Observables
from .._schedule import AbstractSchedule
from .._types import Real
from .base import AbstractRule, Rates, as_schedule


class InoPCA(AbstractRule):
    """Implicitly normalised online PCA, `eq:dynamics_update`: gain `tau/lam`, decay `tau`.

    The gain is divided by the norm of the estimate, so the norm sets the effective learning
    rate `tau/lam`. The norm settles at the leading eigenvalue `omega + 1`.

    **Arguments:**

    - `tau`: the learning rate, a number or a schedule.

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> ino.InoPCA(tau=0.5)
    InoPCA(tau=0.5)
    >>> round(float(ino.critical_snr(ino.InoPCA(tau=0.5))), 3)
    0.207
    ```
    """

    tau: AbstractSchedule = eqx.field(converter=as_schedule, default=0.5)
    projects: ClassVar[bool] = False

    def rates(self, observables: Observables, tau: Real) -> Rates:
        return Rates(gain=tau / observables.lam, decay=tau)
