import equinox as eqx
import numpy as np

from .._check import positive, require
from .._sample import Hidden, Sample
from .._types import Memory, Real, real
from .base import AbstractSchedule


class Harmonic(AbstractSchedule):
    """`tau = c / (t + t0 + k0/p)`.

    `t0` counts from before the start in macroscopic time, `k0` in samples. An offset
    in samples alone vanishes in the limit and leaves `c/t`, which forgets any start:
    see `mean_field`.
    """

    c: Real = eqx.field(converter=real)
    t0: Real = eqx.field(converter=real, default=0.0)
    k0: Real = eqx.field(converter=real, default=0.0)

    def __check_init__(self):
        require("c", self.c, positive, "it must be a positive, finite number")
        for name, value in (("t0", self.t0), ("k0", self.k0)):
            require(
                name,
                value,
                lambda x: np.isfinite(x) & (x >= 0),
                "an offset must be finite and not negative",
            )

    def init(self, p: int) -> Memory:
        return ()

    def drift(self, sample: Sample, memory: Memory) -> Memory:
        return ()

    def tau(self, sample: Sample, memory: Memory, hidden: Hidden) -> Real:
        return self.c / (sample.t + self.t0 + self.k0 / sample.p)
