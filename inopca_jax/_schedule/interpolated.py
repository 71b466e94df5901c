from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._check import Checked, as_reals, number, positive, require, require_whole
from .._observables import Hidden, Observables
from .._types import Real, ScheduleState
from .base import AbstractStatelessSchedule


class Interpolated(AbstractStatelessSchedule):
    """A rate that is piecewise linear in time, and constant before and after its knots.

    **Arguments:**

    - `ts`: the times of the knots, increasing, of shape (knots,).
    - `taus`: the positive rates at the knots, of shape (knots,).

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> ino.Interpolated([0.0, 10.0], [1.0, 0.1])
    Interpolated(ts=[0.0, 10.0], taus=[1.0, 0.1])
    >>> ino.Interpolated.flat(0.5, end=50.0, knots=16).taus.shape
    (16,)
    ```
    """

    ts: Float[Array, " knots"] = eqx.field(converter=as_reals("ts"))
    taus: Float[Array, " knots"] = eqx.field(converter=as_reals("taus"))

    @staticmethod
    def flat(
        tau: Checked[float], end: Checked[float], knots: Checked[int] = 32
    ) -> "Interpolated":
        """Returns a constant rate on knots that `tune` can move.

        The knots are equally spaced in the square root of the time, so that they are close
        together at the beginning, where a good rate changes fastest.

        **Arguments:**

        - `tau`: the rate at all knots.
        - `end`: the time of the last knot; the first is at 0.
        - `knots`: how many, at least 2.

        **Returns:**

        An `Interpolated`.
        """
        knots = require_whole("knots", knots, 2, "pass a whole number of knots, at least 2")
        tau = number("tau", tau)
        require("tau", tau, positive, "it must be a positive, finite number")
        number("end", end)
        require("end", end, positive, "pass a positive, finite time")
        return Interpolated(end * np.linspace(0, 1, knots) ** 2, jnp.full(knots, tau))

    def __check_init__(self):
        if self.ts.ndim != 1 or self.ts.shape != self.taus.shape or not self.ts.size:
            raise ValueError(
                f"Interpolated got ts of shape {self.ts.shape} and taus of shape "
                f"{self.taus.shape}: give one tau for each knot in time, at least one."
            )
        require("ts", self.ts, _increases, "the knots must be finite and increase")
        require("taus", self.taus, positive, "every tau must be positive and finite")

    def tau(self, observables: Observables, state: ScheduleState, hidden: Hidden) -> Real:
        return jnp.interp(observables.t, self.ts, self.taus)


def _increases(x: np.ndarray) -> Any:
    return np.all(np.isfinite(x)) and np.all(np.diff(x) > 0)
