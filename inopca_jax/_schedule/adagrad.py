import equinox as eqx
import jax.numpy as jnp

from .._check import as_number, positive, require
from .._observables import Hidden, Sample
from .._types import Memory, Real
from .base import AbstractSchedule


class AdaGrad(AbstractSchedule):
    """`tau = 1/sqrt(beta)`, `beta` the running sum of the gradient's squares over `p`.

    In AdaOja's own terms `b_k^2 = b_{k-1}^2 + |y_k (y_k.w_k)|^2` and the step is
    `1/b_k`; here `beta = b^2/p^2`. `b0` of order `p` gives a regular limit, a small
    `b0` lets the first sample decide (see `mean_field`).
    """

    b0: Real = eqx.field(converter=as_number("b0"), default=1e-5)

    def __check_init__(self):
        require("b0", self.b0, positive, "it must be a positive, finite number")

    def init(self, p: int | float) -> Memory:
        # Divided before it is squared: p^2 alone would leave float32's accuracy.
        return (self.b0 / p) ** 2

    def drift(self, sample: Sample, memory: Memory) -> Memory:
        return sample.s2 * sample.r

    def tau(self, sample: Sample, memory: Memory, hidden: Hidden) -> Real:
        return 1 / jnp.sqrt(memory)
