import equinox as eqx
import numpy as np

from .._check import as_number, is_known, positive, require
from .._observables import Hidden, Sample
from .._types import Memory, Real
from .base import AbstractSchedule


class Harmonic(AbstractSchedule):
    """`tau = c / (t + t0 + k0/p)`.

    `t0` counts from before the start in macroscopic time, `k0` in samples. An offset
    in samples alone vanishes in the limit and leaves `c/t`, which forgets any start:
    see `mean_field`.
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

    def init(self, p: int | float) -> Memory:
        return ()

    def drift(self, sample: Sample, memory: Memory) -> Memory:
        return ()

    def tau(self, sample: Sample, memory: Memory, hidden: Hidden) -> Real:
        return self.c / (sample.t + self.t0 + self.k0 / sample.p)
