import equinox as eqx
import numpy as np

from .._check import as_number, is_known, positive, require
from .._observables import Hidden, Observables
from .._types import Real, ScheduleState
from .base import AbstractStatelessSchedule


class Harmonic(AbstractStatelessSchedule):
    """A rate that falls with time, `tau = c / (t + t0 + k0/p)`.

    An offset in samples alone vanishes as p grows and leaves `c/t`, with which the start is
    forgotten at once (see `mean_field`).

    **Arguments:**

    - `c`: the numerator, positive.
    - `t0`: an offset in macroscopic time, not negative.
    - `k0`: an offset in samples, not negative. One of the two offsets must be positive.

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> ino.Oja(ino.Harmonic(c=2.0, t0=1.0))
    Oja(tau=Harmonic(c=2.0, t0=1.0, k0=0.0))
    ```
    """

    c: Real = eqx.field(converter=as_number("c"))
    t0: Real = eqx.field(converter=as_number("t0"), default=1.0)
    k0: Real = eqx.field(converter=as_number("k0"), default=0.0)

    def __check_init__(self):
        require("c", self.c, positive, "it must be a positive, finite number")
        for name, value in (("t0", self.t0), ("k0", self.k0)):
            require(
                name,
                value,
                lambda x: np.isfinite(x) & (x >= 0),
                "an offset must be finite and not negative",
            )
        if is_known(self.t0, self.k0) and not self.t0 + self.k0 > 0:
            raise ValueError(
                f"t0 = {self.t0}, k0 = {self.k0} is not allowed: c/t is infinite at the "
                "start; make one of the offsets positive."
            )

    def tau(self, observables: Observables, state: ScheduleState, hidden: Hidden) -> Real:
        return self.c / (observables.t + self.t0 + self.k0 / observables.p)
