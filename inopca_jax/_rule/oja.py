from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp

from .._observables import Observables
from .._schedule import AbstractSchedule
from .._types import Real
from .base import AbstractRule, Rates, as_schedule


class Oja(AbstractRule):
    """Oja's method: a gradient step, then a projection to `|x| = sqrt(p)`.

    These are `eq:oja_gradient_step` and `eq:oja_projection_step`: gain `tau`, decay 0.

    **Arguments:**

    - `tau`: the learning rate, a number or a schedule.

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> ino.Oja(tau=0.5)
    Oja(tau=0.5)
    >>> round(float(ino.critical_snr(ino.Oja(tau=0.5))), 3)
    0.25
    ```
    """

    tau: AbstractSchedule = eqx.field(converter=as_schedule, default=0.5)
    projects: ClassVar[bool] = True

    def rates(self, observables: Observables, tau: Real) -> Rates:
        return Rates(gain=tau, decay=jnp.zeros_like(tau))
