from .._observables import Hidden, Sample
from .._types import Memory, Real
from .base import AbstractSchedule


class Oracle(AbstractSchedule):
    """The gain that raises the overlap fastest, `eq:optimal_nu_t`.

    It reads the true overlap and signal-to-noise ratio: a benchmark, not an
    algorithm. Its path is the best that any gain can do (`oracle_overlap`). The rule's
    gain has to be proportional to `tau`, as that of all rules here is.
    """

    def init(self, p: int | float) -> Memory:
        return ()

    def drift(self, sample: Sample, memory: Memory) -> Memory:
        return ()

    def tau(self, sample: Sample, memory: Memory, hidden: Hidden) -> Real:
        q2 = hidden.q**2
        best_gain = hidden.omega * (1 - q2) / (hidden.omega * q2 + 1)
        return best_gain / hidden.unit_gain
