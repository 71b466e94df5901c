from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp

from .._check import as_number, positive, require
from .._schedule import AbstractSchedule
from .._types import Real, RuleState
from . import small_matrices
from .base import as_schedule
from .subspace import AbstractSubspaceRule, SubspaceObservables, SubspaceRates


class PAST(AbstractSubspaceRule):
    """Projection approximation subspace tracking: recursive least squares with forgetting.

        V' = V + (y - V w) g^T,  g = R'^-1 w/p,  R' = (1 - tau/p) R + w w^T/p,  w = V^T y

    with `V = X/sqrt(p)`. The rate `tau` sets the forgetting factor, `beta = 1 - tau/p`: a
    sample that is `age` times p samples old has the weight `exp(-tau age)`. The published
    form has the matrix `P = R^-1/p`, and updates it without an inversion. The components
    settle on any basis of the span of the strongest spikes.

    With the same tau `InoPCA` has the same steady overlap, and for small tau nearly the
    same path.

    **Arguments:**

    - `tau`: the rate of forgetting, a number or a schedule.
    - `gain0`: the gain at the start, `R = I/gain0`, a positive number. The published start
        from `P = I` is `gain0 = p`: then the first samples decide, and the limit of large p
        is singular at t = 0.

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> ino.PAST(0.5, gain0=0.5)
    PAST(tau=0.5, gain0=0.5)
    >>> float(ino.critical_snr(ino.PAST(0.5))) == float(ino.critical_snr(ino.InoPCA(0.5)))
    True
    ```
    """

    tau: AbstractSchedule = eqx.field(converter=as_schedule, default=0.5)
    gain0: Real = eqx.field(converter=as_number("gain0"), default=1.0)
    projects: ClassVar[bool] = False
    forgets: ClassVar[bool] = True

    def __check_init__(self):
        require("gain0", self.gain0, positive, "it must be a positive, finite number")

    def init(self, components: int) -> RuleState:
        return jnp.eye(components, dtype=self.gain0.dtype) / self.gain0

    def drift(
        self, observables: SubspaceObservables, tau: Real, state: RuleState
    ) -> RuleState:
        return observables.outer - tau * state

    def rates(
        self, observables: SubspaceObservables, tau: Real, state: RuleState
    ) -> SubspaceRates:
        gain = small_matrices.inverse(state)
        return SubspaceRates(gain, small_matrices.product(observables.outer, gain))
