"""The high-dimensional limit of any rule, from the rule itself."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._rule import AbstractRule, rates_at
from .._sample import Sample
from .._types import Memory, Real

# S is a centred normal variable and rules see S^2 alone, so half a line is enough. The
# trapezoidal rule on it converges geometrically for smooth integrands: polynomials are
# exact to rounding, and so is a saturating rate such as 1/(1 + S^2), where as many
# Gauss-Hermite nodes would leave an error of 1e-5.
_SPACING, _REACH = 0.25, 9.0
_NODES = np.arange(0.0, _REACH + _SPACING / 2, _SPACING)
_WEIGHTS = np.exp(-(_NODES**2) / 2) * np.where(_NODES == 0, 1, 2)
_WEIGHTS /= _WEIGHTS.sum()


class Limit(eqx.Module):
    """`a1 = E[nu S^2]`, `a2 = E[nu^2 S^2]`, `a3 = E[h]`, and the memory's drift, all
    over `S ~ N(0, s2)` with `s2 = omega q^2 + 1`."""

    a1: Real
    a2: Real
    a3: Real
    s2: Real
    drift: Memory


def limit(
    rule: AbstractRule, omega: Real, p: int, t: Real, q: Real, lam: Real, memory: Memory
) -> Limit:
    """The coefficients that every limit of the rule is made of.

    `p` matters to schedules that count samples (`Harmonic.k0`) and to nothing else.
    """
    s2 = omega * q**2 + 1

    def at(node: Real) -> tuple[Real, Real, Real, Memory]:
        sample = Sample(
            lam=lam,
            s2=s2 * node**2,
            r=jnp.ones_like(lam),
            t=t,
            p=jnp.asarray(p, lam.dtype),
        )
        rates = rates_at(rule, sample, q, omega, memory)
        pull = rates.gain * sample.s2
        return pull, rates.gain * pull, rates.decay, rule.tau.drift(sample, memory)

    values = jax.vmap(at)(jnp.asarray(_NODES, lam.dtype))
    weights = jnp.asarray(_WEIGHTS, lam.dtype)
    a1, a2, a3, drift = jax.tree.map(lambda v: jnp.tensordot(weights, v, 1), values)
    return Limit(a1, a2, a3, s2, drift)


def velocity(
    rule: AbstractRule, omega: Real, p: int, t: Real, q: Real, lam: Real, memory: Memory
) -> tuple[Real, Real, Memory]:
    """`d(q, lam, memory)/dt`. INO-PCA's is `eq:Q_t`, `eq:lambda_t`."""
    a = limit(rule, omega, p, t, q, lam, memory)
    dq = q * (a.a1 / a.s2 * omega * (1 - q**2) - a.a2 / 2)
    dlam = lam * (a.a1 + a.a2 / 2 - a.a3)
    return dq, jnp.zeros_like(lam) if rule.projects else dlam, a.drift
