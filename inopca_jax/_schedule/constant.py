import equinox as eqx

from .._check import as_number, positive, require
from .._observables import Hidden, Sample
from .._types import Memory, Real
from .base import AbstractSchedule


class Constant(AbstractSchedule):
    """The same learning rate at every sample."""

    value: Real = eqx.field(converter=as_number("tau"))

    def __check_init__(self):
        require("tau", self.value, positive, "it must be a positive, finite number")

    def init(self, p: int | float) -> Memory:
        return ()

    def drift(self, sample: Sample, memory: Memory) -> Memory:
        return ()

    def tau(self, sample: Sample, memory: Memory, hidden: Hidden) -> Real:
        return self.value
