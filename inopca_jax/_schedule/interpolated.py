from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._check import Checked, as_reals, number, positive, require, require_whole
from .._observables import Hidden, Sample
from .._types import Memory, Real
from .base import AbstractSchedule


class Interpolated(AbstractSchedule):
    """Piecewise linear in time through `(ts, taus)`, constant beyond its ends."""

    ts: Float[Array, " knots"] = eqx.field(converter=as_reals("ts"))
    taus: Float[Array, " knots"] = eqx.field(converter=as_reals("taus"))

    @staticmethod
    def flat(
        tau: Checked[float], end: Checked[float], knots: Checked[int] = 32
    ) -> "Interpolated":
        """A constant rate as knots to be tuned, closer together at the beginning, where
        a rate has to change: at equal steps of the square root of the time."""
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

    def init(self, p: int | float) -> Memory:
        return ()

    def drift(self, sample: Sample, memory: Memory) -> Memory:
        return ()

    def tau(self, sample: Sample, memory: Memory, hidden: Hidden) -> Real:
        return jnp.interp(sample.t, self.ts, self.taus)


def _increases(x: np.ndarray) -> Any:
    return np.all(np.isfinite(x)) and np.all(np.diff(x) > 0)
