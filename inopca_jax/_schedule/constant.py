from typing import ClassVar

import equinox as eqx

from .._check import as_number, positive, require
from .._observables import Hidden, Observables
from .._types import Real, ScheduleState
from .base import AbstractStatelessSchedule


class Constant(AbstractStatelessSchedule):
    """The same learning rate at every sample.

    **Arguments:**

    - `value`: the learning rate, positive.

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> ino.InoPCA(ino.Constant(0.5))
    InoPCA(tau=0.5)
    ```
    """

    value: Real = eqx.field(converter=as_number("tau"))
    _shown_as: ClassVar[str | None] = "value"

    def __check_init__(self):
        require("tau", self.value, positive, "it must be a positive, finite number")

    def tau(self, observables: Observables, state: ScheduleState, hidden: Hidden) -> Real:
        return self.value
