from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp

from .._schedule import AbstractSchedule
from .._types import Real, RuleState
from .base import as_schedule
from .subspace import AbstractSubspaceRule, SubspaceObservables, SubspaceRates


class OjaSubspace(AbstractSubspaceRule):
    """Oja's method for several components: a gradient step, then a QR decomposition.

        X <- the factor Q of X + (tau/p) y (X^T y)^T,  with columns of length sqrt(p)

    The triangular factor R has a positive diagonal: the columns are made orthonormal in
    their order. So the i-th component finds the i-th strongest spike, and of one component
    this is `Oja`.

    **Arguments:**

    - `tau`: the learning rate, a number or a schedule.

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> model = ino.SpikedModel(p=1000, omega=[4.0, 2.0])
    >>> start, ts = ino.WarmStart(0.2), [0.0, 50.0]
    >>> config = ino.Config(ino.OjaSubspace(0.5), model, start, ts, components=2)
    >>> round(float(ino.mean_field(config).grassmann_distance()[-1]), 3)
    0.781
    ```
    """

    tau: AbstractSchedule = eqx.field(converter=as_schedule, default=0.5)
    projects: ClassVar[bool] = True

    def init(self, components: int) -> RuleState:
        return ()

    def drift(
        self, observables: SubspaceObservables, tau: Real, state: RuleState
    ) -> RuleState:
        return ()

    def rates(
        self, observables: SubspaceObservables, tau: Real, state: RuleState
    ) -> SubspaceRates:
        gram = observables.gram
        gain = tau * jnp.eye(len(gram), dtype=gram.dtype)
        return SubspaceRates(gain=gain, decay=jnp.zeros_like(gram))
