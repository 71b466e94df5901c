from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp

from .._schedule import AbstractSchedule
from .._types import Real, RuleState
from .base import as_schedule
from .subspace import AbstractSubspaceRule, SubspaceObservables, SubspaceRates


class GHA(AbstractSubspaceRule):
    """The generalised Hebbian algorithm, Sanger's rule.

        V' = V + (tau/p) [ y w^T - V UT(w w^T) ],  w = V^T y,  V = X/sqrt(p)

    with `UT` the upper triangle and its diagonal. The i-th component finds the i-th
    strongest spike. All norms settle at `sqrt(1 + tau/2)`.

    **Arguments:**

    - `tau`: the learning rate, a number or a schedule.

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> model = ino.SpikedModel(p=1000, omega=[4.0, 2.0])
    >>> config = ino.Config(ino.GHA(0.5), model, ts=[0.0, 50.0], components=2)
    >>> q, lam = ino.steady_state(config)
    >>> [round(float(norm), 3) for norm in lam]
    [1.118, 1.118]
    ```
    """

    tau: AbstractSchedule = eqx.field(converter=as_schedule, default=0.5)
    projects: ClassVar[bool] = False

    def init(self, components: int) -> RuleState:
        return ()

    def drift(
        self, observables: SubspaceObservables, tau: Real, state: RuleState
    ) -> RuleState:
        return ()

    def rates(
        self, observables: SubspaceObservables, tau: Real, state: RuleState
    ) -> SubspaceRates:
        outer = observables.outer
        gain = tau * jnp.eye(len(outer), dtype=outer.dtype)
        return SubspaceRates(gain=gain, decay=tau * jnp.triu(outer))
