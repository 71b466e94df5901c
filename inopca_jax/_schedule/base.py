"""Where the learning rate comes from."""

import abc

from .._observables import Hidden, Sample
from .._pickling import Pickled
from .._types import Memory, Real


class AbstractSchedule(Pickled):
    """Supplies the learning rate `tau`, from the time or from a memory of its own.

    The memory moves by `drift/p` at every sample, before `tau` is read. That it moves
    slowly is what gives the schedule a mean-field limit: there the memory obeys
    `d memory/dt = E[drift]`.
    """

    @abc.abstractmethod
    def init(self, p: int | float) -> Memory:
        """The memory before the first sample, `()` for a schedule that has none."""

    @abc.abstractmethod
    def drift(self, sample: Sample, memory: Memory) -> Memory:
        """`p` times the change of the memory at this sample."""

    @abc.abstractmethod
    def tau(self, sample: Sample, memory: Memory, hidden: Hidden) -> Real:
        """The learning rate. Reading `hidden` makes the schedule an oracle."""
