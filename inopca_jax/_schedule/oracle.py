from .._observables import Hidden, Observables
from .._types import Real, ScheduleState
from .base import AbstractStatelessSchedule


class Oracle(AbstractStatelessSchedule):
    """The schedule whose gain raises the overlap fastest, `eq:optimal_nu_t`.

    It reads the true overlap and signal-to-noise ratio: it is a benchmark, not an algorithm
    for data. Its path is the best that any gain can reach (`oracle_overlap`). The gain of
    the rule has to be proportional to `tau`, as it is for all rules of the package.

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> config = ino.Config(ino.Oja(ino.Oracle()), ts=[0.0, 10.0, 50.0])
    >>> best = ino.oracle_overlap(1.0, 0.1, config.ts)
    >>> bool(abs(ino.mean_field(config).q - best).max() < 1e-3)
    True
    ```
    """

    def tau(self, observables: Observables, state: ScheduleState, hidden: Hidden) -> Real:
        q2 = hidden.q**2
        best_gain = hidden.omega * (1 - q2) / (hidden.omega * q2 + 1)
        return best_gain / hidden.unit_gain
