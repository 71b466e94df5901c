from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp

from .._check import as_number, positive, require
from .._schedule import AbstractSchedule
from .._types import Matrix, Real, RuleState
from . import small_matrices
from .base import as_schedule
from .subspace import AbstractSubspaceRule, SubspaceObservables, SubspaceRates


class PETRELS(AbstractSubspaceRule):
    """Parallel estimation and tracking by recursive least squares, of complete samples.

        V' = V + (y - V a) g^T,  g = R'^-1 a/p,  R' = (1 - tau/p) R + a a^T/p,
        a = (V^T V)^-1 V^T y

    with `V = X/sqrt(p)`. It differs from `PAST` by the coefficients `a`: those of the
    projection of the sample on the span of the estimates, for which `PAST` takes `V^T y`,
    as if the estimates were orthonormal. So its path does not depend on the basis of the
    span, and the lengths of its estimates are not controlled, but grow slowly. Without
    missing entries, which it is made for, all rows of the estimates have the same `R`.

    Of one component it is `Krasulina` with a gain of its own.

    **Arguments:**

    - `tau`: the rate of forgetting, `beta = 1 - tau/p`, a number or a schedule.
    - `gain0`: the gain at the start, `R = I/gain0`, a positive number.

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> rules = ino.PETRELS(0.5), ino.PAST(0.5)
    >>> [round(float(ino.critical_snr(rule)), 3) for rule in rules]
    [0.183, 0.207]
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
        return _squares(observables)[1] - tau * state

    def rates(
        self, observables: SubspaceObservables, tau: Real, state: RuleState
    ) -> SubspaceRates:
        inverse, squares = _squares(observables)
        own = small_matrices.inverse(state)
        return SubspaceRates(
            gain=small_matrices.product(own, inverse),
            decay=small_matrices.product(squares, own),
        )


def _squares(observables: SubspaceObservables) -> tuple[Matrix, Matrix]:
    """Returns the inverse of `V^T V`, and `a a^T`."""
    inverse = small_matrices.inverse(observables.gram)
    half = small_matrices.product(inverse, observables.outer)
    return inverse, small_matrices.product(half, inverse)
