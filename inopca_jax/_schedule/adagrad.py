import equinox as eqx
import jax.numpy as jnp

from .._check import as_number, positive, require
from .._observables import Hidden, Observables
from .._types import Real, Scalar, ScheduleState
from .base import AbstractSchedule


class AdaGrad(AbstractSchedule):
    """The AdaGrad learning rate of AdaOja, which falls with the sum of squared gradients.

    It is `tau = 1/sqrt(beta)`, where `beta` is the sum of squared gradients, over `p`.

    AdaOja is published with the step `1/b_k`, `b_k^2 = b_{k-1}^2 + |y_k (y_k.w_k)|^2`; here
    `beta = b^2/p^2`. A `b0` of order `p` has a regular limit. With a small `b0` the first
    sample decides where the estimate goes (see `mean_field`).

    **Arguments:**

    - `b0`: the initial value of `b`, positive.

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> ino.InoPCA(ino.AdaGrad(b0=1000.0))
    InoPCA(tau=AdaGrad(b0=1000.0))
    ```
    """

    b0: Real = eqx.field(converter=as_number("b0"), default=1e-5)

    def __check_init__(self):
        require("b0", self.b0, positive, "it must be a positive, finite number")

    def init(self, p: Scalar) -> ScheduleState:
        # Divided before it is squared: p^2 alone would lose digits in float32.
        return (self.b0 / p) ** 2

    def drift(self, observables: Observables, state: ScheduleState) -> ScheduleState:
        return observables.s2 * observables.r

    def tau(self, observables: Observables, state: ScheduleState, hidden: Hidden) -> Real:
        return 1 / jnp.sqrt(state)
