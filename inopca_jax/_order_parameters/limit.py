"""The coefficients of the high-dimensional limit of any rule, from the rule itself."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from .._observables import Observables
from .._rule import AbstractRule, Rates, rates_at
from .._types import Real, ScheduleState


class Quadrature(NamedTuple):
    """Nodes of `|S|` over its standard deviation, and their weights."""

    values: np.ndarray
    weights: np.ndarray

    def mean(self, values: PyTree) -> PyTree:
        """Returns the expectation of arrays with an axis of nodes in front."""
        return jax.tree.map(
            lambda v: jnp.tensordot(jnp.asarray(self.weights, v.dtype), v, 1), values
        )


def _trapezoid(spacing: float, largest: float) -> Quadrature:
    # From half a spacing on: at S = 0 a rule that reads |S| has no derivative.
    values = np.arange(spacing / 2, largest, spacing)
    weights = np.exp(-(values**2) / 2)
    return Quadrature(values, weights / weights.sum())


# S is a centred normal variable and rules see S^2 alone, so half a line is enough. The
# trapezoidal rule on it converges geometrically for smooth integrands: polynomials are
# exact to rounding, and so is a saturating rate such as 1/(1 + S^2), where Gauss-Hermite
# converges slowly. A kink in S costs a relative error of about 1e-3, a jump one of some
# per cent. The coarse rule is for what is multiplied by 1/p, or by a random number: its
# ten nodes leave an error of 1e-6 in polynomials and of 1e-3 in 1/(1 + S^2).
FINE, COARSE = _trapezoid(0.0625, 9.0), _trapezoid(0.625, 6.25)


class LimitCoefficients(eqx.Module):
    """The expectations over one sample that every limit of a rule is made of.

    Over `S ~ N(0, s2)`, the sample's component along the estimate, with
    `s2 = omega q^2 + 1`:

    **Arguments:**

    - `a1`, `a2`, `a3`: `E[nu S^2]`, `E[nu^2 S^2]` and `E[h]`, for the gain `nu` and the
      decay `h`.
    - `s2`: the variance of `S`.
    - `schedule_drift`: the mean drift of the schedule's state.
    """

    a1: Real
    a2: Real
    a3: Real
    s2: Real
    schedule_drift: ScheduleState

    def dq_dt(self, omega: Real, q: Real, q_other: Array, rho: Array) -> Array:
        """Returns the velocity of the overlap with any fixed direction.

        **Arguments:**

        - `omega`, `q`: the signal-to-noise ratio and the overlap with the spike.
        - `q_other`: the overlap with the direction.
        - `rho`: the overlap of the direction with the spike; 1 for the spike itself.
        """
        signal = self.a1 / self.s2 * omega * q
        return signal * (rho - q * q_other) - self.a2 / 2 * q_other

    def dlam_dt(self, rule: AbstractRule, lam: Real) -> Real:
        """Returns the velocity of the norm."""
        dlam = lam * (self.a1 + self.a2 / 2 - self.a3)
        return jnp.zeros_like(lam) if rule.projects else dlam


def limit_coefficients(
    rule: AbstractRule,
    omega: Real,
    p: Any,
    t: Real,
    q: Real,
    lam: Real,
    state: ScheduleState,
) -> LimitCoefficients:
    """Returns the coefficients of the limit at one point.

    **Arguments:**

    - `rule`, `omega`: the rule and the signal-to-noise ratio.
    - `p`: the dimension, which only schedules that count samples read (`Harmonic.k0`).
    - `t`, `q`, `lam`: the time, the overlap and the norm.
    - `state`: the schedule's state.
    """
    s2 = omega * q**2 + 1
    p = jnp.asarray(p, lam.dtype)

    def observables(node: Real) -> Observables:
        return Observables(lam=lam, s2=s2 * node**2, r=jnp.ones_like(lam), t=t, p=p)

    def rates(node: Real) -> Rates:
        return rates_at(rule, observables(node), q, omega, state)

    def drift(node: Real) -> ScheduleState:
        return rule.tau.drift(observables(node), state)

    values = jnp.asarray(FINE.values, lam.dtype)
    schedule_drift = FINE.mean(jax.vmap(drift)(values))
    try:
        # Most rules do not read S. Then there is one pair of rates for all nodes, which
        # `vmap` knows, and E[S^2] = s2 is all that the integral needs.
        shared_rates = jax.vmap(rates, out_axes=None)(values)
        a1, a2, a3 = shared_rates.gain * s2, shared_rates.gain**2 * s2, shared_rates.decay
    except ValueError:
        node_rates = jax.vmap(rates)(values)
        gain_s2 = node_rates.gain * s2 * values**2
        a1, a2, a3 = FINE.mean((gain_s2, node_rates.gain * gain_s2, node_rates.decay))
    return LimitCoefficients(a1, a2, a3, s2, schedule_drift)


def velocity(
    rule: AbstractRule,
    omega: Real,
    p: Any,
    t: Real,
    q: Real,
    lam: Real,
    state: ScheduleState,
    turning: Real | None = None,
) -> tuple[Real, Real, ScheduleState]:
    """Returns `d(q, lam, state)/dt` of the mean field: for INO-PCA `eq:Q_t`,
    `eq:lambda_t`. A spike that turns takes `turning q` from `dq/dt`."""
    limit = limit_coefficients(rule, omega, p, t, q, lam, state)
    dq_dt = limit.dq_dt(omega, q, q, jnp.ones_like(q))
    if turning is not None:
        dq_dt = dq_dt - turning * q
    return dq_dt, limit.dlam_dt(rule, lam), limit.schedule_drift
