"""Where the estimate begins."""

import abc

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from ._check import require
from ._types import Real, scalar


class AbstractStart(eqx.Module):
    """`x_0` proportional to `c xi + s z`, `z ~ N(0, I)`, of length `sqrt(p) lam0`."""

    lam0: eqx.AbstractVar[Real]

    @abc.abstractmethod
    def mixture(self) -> tuple[Real, Real]:
        """`(c, s)` with `c^2 + s^2 = 1`; `c` is the overlap as `p` grows."""


class ColdStart(AbstractStart):
    """A start that knows nothing: the overlap is of order `1/sqrt(p)`, of either sign."""

    lam0: Real = eqx.field(converter=scalar, default=1.0)

    def __check_init__(self):
        require_norm(self.lam0)

    def mixture(self) -> tuple[Real, Real]:
        return jnp.zeros_like(self.lam0), jnp.ones_like(self.lam0)


class WarmStart(AbstractStart):
    """A start of overlap `q0`, up to a fluctuation of order `1/sqrt(p)`."""

    q0: Real = eqx.field(converter=scalar, default=0.1)
    lam0: Real = eqx.field(converter=scalar, default=1.0)

    def __check_init__(self):
        require("q0", self.q0, lambda x: np.abs(x) <= 1, "an overlap lies in [-1, 1]")
        require_norm(self.lam0)

    def mixture(self) -> tuple[Real, Real]:
        # The derivative of sqrt at 0 is infinite, and 0 * inf is not a number: hold
        # it off there, so that a gradient in q0 stays finite at |q0| = 1 too.
        left = 1 - self.q0**2
        inside = left > 0
        return self.q0, jnp.where(inside, jnp.sqrt(jnp.where(inside, left, 1)), 0)


def require_norm(lam0: Real) -> None:
    """Refuses a `lam0` that the precision which it is held in cannot square."""
    # |x|^2 and its reciprocal have to be numbers of the precision in use.
    edge = 1e15 if lam0.dtype == np.float32 else 1e150
    require(
        "lam0",
        lam0,
        lambda x: (x >= 1 / edge) & (x <= edge),
        f"the norm must be positive and, in {lam0.dtype}, within "
        f"[{1 / edge:.0e}, {edge:.0e}]",
    )
