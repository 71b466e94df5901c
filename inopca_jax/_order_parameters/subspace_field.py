"""The mean field of rules that act on all components at once: a matrix ODE.

With `Q` the products of the spikes' directions with the components `V = X/sqrt(p)`,
`N = V^T V`, `Omega` the diagonal matrix of the signal-to-noise ratios, and

    A = Q^T Omega Q + N,

the covariance of `w = V^T y`, a step `V' = V (I - H/p) + y (G w)^T/p` gives in the limit of
large p

    dQ/dt = (Omega + I) Q G^T - Q E[H]
    dN/dt = A G^T + G A - N E[H] - E[H]^T N + G A G^T

and the rule's state moves by its mean drift. The last term is the square of the sample's
noise. A rule that makes its components orthonormal has `N = I`; if the right-hand side of
`dN/dt` is B before that, `dQ/dt` gets `- Q U` with the upper triangular `U`, `U + U^T = B`:
the change of the triangular factor.

The equations close if `G` does not depend on the sample, and if `H` and the drift are
linear in `w w^T`, up to a constant: the mean of that is A, and higher moments do not enter.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from .._model import SpikedModel
from .._rule import (
    AbstractSubspaceRule,
    SubspaceObservables,
    SubspaceRates,
    SubspaceState,
    initial_states,
    learning_rate,
    schedule_drift,
)
from .._types import Matrix, Real


def subspace_velocity(
    rule: AbstractSubspaceRule,
    model: SpikedModel,
    t: Real,
    products: Float[Array, "spikes components"],
    gram: Matrix,
    state: SubspaceState,
) -> tuple[Float[Array, "spikes components"], Matrix, SubspaceState]:
    """Returns the derivatives of `Q`, of `N` and of the states with respect to time."""
    matmul = lambda a, b: jnp.matmul(a, b, precision="highest")
    signal = model.effective_omega.reshape(-1)[:, None] * products
    covariance = matmul(products.T, signal) + gram
    p = jnp.asarray(model.p, gram.dtype)
    one, t = jnp.ones_like(p), jnp.asarray(t, gram.dtype)

    def seen(outer: Matrix) -> SubspaceObservables:
        return SubspaceObservables(outer=outer, gram=gram, r=one, t=t, p=p)

    def rates(outer: Matrix) -> SubspaceRates:
        return rule.rates(seen(outer), learning_rate(rule, seen(outer), state), state[1])

    def means(outer: Matrix) -> tuple[Matrix, SubspaceState]:
        tau = learning_rate(rule, seen(outer), state)
        own = rule.drift(seen(outer), tau, state[1])
        return rates(outer).decay, (schedule_drift(rule, seen(outer), state), own)

    several = jnp.stack([covariance, gram])
    try:
        # What is not the same for all of them depends on the sample.
        gain = jax.vmap(lambda outer: rates(outer).gain, out_axes=None)(several)
        jax.vmap(_derivative(means, covariance), out_axes=None)(several)
    except ValueError as error:
        raise ValueError(
            f"rule = {type(rule).__name__} with the schedule {type(rule.tau).__name__} is "
            "not allowed with mean_field: its gain depends on the sample, or its decay or "
            "the drift of a state is not linear in w w^T, and then the equations do not "
            "close. Use simulate(config, engine=Chain(), ...), which is exact."
        ) from error
    decay, drifts = means(covariance)
    pull = matmul(covariance, gain.T) - matmul(gram, decay)
    dgram = pull + pull.T + matmul(gain, matmul(covariance, gain.T))
    dproducts = matmul(signal + products, gain.T) - matmul(products, decay)
    if rule.projects:
        triangle = jnp.triu(dgram, 1) + jnp.diag(jnp.diagonal(dgram) / 2)
        dproducts = dproducts - matmul(products, triangle)
        dgram = jnp.zeros_like(gram)
    if model.turning is not None:
        dproducts = dproducts - model.turning * products
    return dproducts, dgram, drifts


def _derivative(
    f: Callable[[Matrix], PyTree], direction: Matrix
) -> Callable[[Matrix], PyTree]:
    """Returns the derivative of `f` in one direction, the same everywhere if `f` is linear
    up to a constant."""
    return lambda at: jax.jvp(f, (at,), (direction,))[1]


def mean_square_step(
    rule: AbstractSubspaceRule, p: Any, lams: Float[Array, " components"]
) -> Real:
    """Returns `p` times the mean square of the first step of the component that moves the
    most, over the square of its length, without a signal."""
    gram, p = jnp.diag(lams**2), jnp.asarray(p, lams.dtype)
    (state,) = initial_states(rule, p, len(lams))
    seen = SubspaceObservables(outer=gram, gram=gram, r=jnp.ones_like(p), t=1 / p, p=p)
    gain = rule.rates(seen, learning_rate(rule, seen, state), state[1]).gain
    steps = jnp.einsum("ij,jk,ik->i", gain, gram, gain)
    return jnp.max(steps / lams**2)
