from typing import ClassVar

import equinox as eqx
import numpy as np

from .._check import as_number, require
from .._observables import Observables
from .._schedule import AbstractSchedule
from .._types import Real
from .base import AbstractRule, Rates, as_schedule


class Cubic(AbstractRule):
    """Gradient descent on `eq:formulation`, by default `eq:regularized_update`.

    Gain `tau`, decay `tau lam^(degree - 2)`. Its overlap has the same limit as Oja's; its
    norm settles at `(omega + 1)^(1/(degree - 2))`.

    **Arguments:**

    - `tau`: the learning rate, a number or a schedule.
    - `degree`: the power `l > 2` of the norm's penalty, whose factor is
      `eta = p^(-(l-2)/2)`.

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> config = ino.Config(ino.Cubic(tau=0.5, degree=4.0))
    >>> q, lam = ino.steady_state(config)
    >>> round(float(lam), 3)
    1.414
    ```
    """

    tau: AbstractSchedule = eqx.field(converter=as_schedule, default=0.5)
    degree: Real = eqx.field(converter=as_number("degree"), default=3.0)
    projects: ClassVar[bool] = False

    def __check_init__(self):
        require(
            "degree",
            self.degree,
            lambda x: np.isfinite(x) & (x > 2),
            "the penalty outgrows the quadratic gain only if degree > 2",
        )

    def rates(self, observables: Observables, tau: Real) -> Rates:
        return Rates(gain=tau, decay=tau * observables.lam ** (self.degree - 2))
