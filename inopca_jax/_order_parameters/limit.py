"""The high-dimensional limit of any rule, from the rule itself."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from .._observables import Sample
from .._rule import AbstractRule, Rates, rates_at
from .._types import Memory, Real


class Nodes(NamedTuple):
    """Values of `|S|` over its standard deviation, and their weights."""

    values: np.ndarray
    weights: np.ndarray

    def mean(self, values: PyTree) -> PyTree:
        """The expectation of what was computed at the nodes."""
        return jax.tree.map(
            lambda v: jnp.tensordot(jnp.asarray(self.weights, v.dtype), v, 1), values
        )


def _trapezoid(spacing: float, reach: float) -> Nodes:
    # From half a spacing on: at S = 0 a rule that reads |S| has no derivative.
    values = np.arange(spacing / 2, reach, spacing)
    weights = np.exp(-(values**2) / 2)
    return Nodes(values, weights / weights.sum())


# S is a centred normal variable and rules see S^2 alone, so half a line is enough. The
# trapezoidal rule on it converges geometrically for smooth integrands: polynomials are
# exact to rounding, and so is a saturating rate such as 1/(1 + S^2), where Gauss-Hermite
# converges slowly. A kink in S costs a relative error of about 1e-3, a jump one of some
# per cent. The coarse rule is for what is multiplied by 1/p, or by a random number: its
# ten nodes leave an error of 1e-6 in polynomials and of 1e-3 in 1/(1 + S^2).
FINE, COARSE = _trapezoid(0.0625, 9.0), _trapezoid(0.625, 6.25)


class Limit(eqx.Module):
    """`a1 = E[nu S^2]`, `a2 = E[nu^2 S^2]`, `a3 = E[h]`, and the memory's drift, all
    over `S ~ N(0, s2)` with `s2 = omega q^2 + 1`."""

    a1: Real
    a2: Real
    a3: Real
    s2: Real
    drift: Memory

    def turn(self, omega: Real, q: Real, q_other: Array, rho: Array) -> Array:
        """`dq_other/dt` of the overlap with any direction that has the overlap `rho`
        with the spike in force; with `rho = 1` it is the spike's own."""
        pull = self.a1 / self.s2 * omega * q
        return pull * (rho - q * q_other) - self.a2 / 2 * q_other

    def stretch(self, rule: AbstractRule, lam: Real) -> Real:
        """`dlam/dt`."""
        dlam = lam * (self.a1 + self.a2 / 2 - self.a3)
        return jnp.zeros_like(lam) if rule.projects else dlam


def limit(
    rule: AbstractRule,
    omega: Real,
    p: int | float,
    t: Real,
    q: Real,
    lam: Real,
    memory: Memory,
) -> Limit:
    """The coefficients that every limit of the rule is made of.

    `p` matters to schedules that count samples (`Harmonic.k0`) and to nothing else.
    """
    s2 = omega * q**2 + 1

    def seen(node: Real) -> Sample:
        big_p = jnp.asarray(p, lam.dtype)
        return Sample(lam=lam, s2=s2 * node**2, r=jnp.ones_like(lam), t=t, p=big_p)

    def rates(node: Real) -> Rates:
        return rates_at(rule, seen(node), q, omega, memory)

    values = jnp.asarray(FINE.values, lam.dtype)
    drift = FINE.mean(jax.vmap(lambda node: rule.tau.drift(seen(node), memory))(values))
    try:
        # Most rules do not look at S: then there is one pair of rates for all nodes,
        # which `vmap` knows, and E[S^2] = s2 is all that is left of the integral.
        same = jax.vmap(rates, out_axes=None)(values)
        a1, a2, a3 = same.gain * s2, same.gain**2 * s2, same.decay
    except ValueError:
        each = jax.vmap(rates)(values)
        pull = each.gain * s2 * values**2
        a1, a2, a3 = FINE.mean((pull, each.gain * pull, each.decay))
    return Limit(a1, a2, a3, s2, drift)


def velocity(
    rule: AbstractRule,
    omega: Real,
    p: int | float,
    t: Real,
    q: Real,
    lam: Real,
    memory: Memory,
) -> tuple[Real, Real, Memory]:
    """`d(q, lam, memory)/dt`. INO-PCA's is `eq:Q_t`, `eq:lambda_t`."""
    a = limit(rule, omega, p, t, q, lam, memory)
    return a.turn(omega, q, q, jnp.ones_like(q)), a.stretch(rule, lam), a.drift
