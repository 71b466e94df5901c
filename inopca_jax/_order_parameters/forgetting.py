"""Exponentially weighted PCA in closed form: what a memory of samples can tell."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from .._check import Checked, positive, require
from .._types import Real
from .bounds import broadcastable


def forgetting_overlap(
    omega: Checked[ArrayLike], memory: Checked[ArrayLike]
) -> Float[Array, "*n"]:
    """Returns the overlap of exponentially weighted PCA in its steady state, for large p.

    It is that of the top eigenvector of `sum_k w_k y_k y_k^T`, where the weight of a sample
    falls as `exp(-age/memory)`, with both in units of p samples. With
    `B = memory (exp(1/(memory omega)) - 1)` it is

        q^2 = ((1 + omega)/(omega B) - 1)/omega

    where that is positive, and 0 else. For a long memory `1 - q^2` is
    `(1 + omega)/(2 memory omega^2)`: that of offline PCA on `2 memory` samples. Each of
    several spikes has this overlap with its eigenvector.

    It is no bound for estimates that keep only a few directions of the samples in their
    memory. With a long one, `1 - q^2` of `Sketch(memory=p * memory)` is that of INO-PCA
    with `tau = 1/memory`, `omega/(1 + omega)` of the above: the noise that is dropped does
    not compete with the direction, which follows more slowly by that factor.

    **Arguments:**

    - `omega`: the signal-to-noise ratio, at least 0.
    - `memory`: the memory over p, positive; infinite for an overlap of 1.

    **Returns:**

    The overlap, of the shape to which the arguments broadcast.

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> overlaps = ino.forgetting_overlap(omega=1.5, memory=[0.2, 2.0, 20.0])
    >>> [round(float(q), 3) for q in overlaps]
    [0.0, 0.859, 0.986]
    ```
    """
    return _forgetting_overlaps(*_checked(omega, memory))


def forgetting_eigenvalue(
    omega: Checked[ArrayLike], memory: Checked[ArrayLike]
) -> Float[Array, "*n"]:
    """Returns the eigenvalue of a spike in exponentially weighted PCA, for large p.

    The weights add up to 1. Where the spike is found (`forgetting_overlap` is positive) the
    eigenvalue is larger than the true `1 + omega` by the noise that it takes in:

        (1 + omega)/(memory omega (1 - exp(-1/(memory omega))))

    Where it is not found it is the edge of the noise's own eigenvalues: `exp(u)`, where
    `exp(u) - 1 - u = 1/memory`. There `1/(memory u)` is the omega from which on a spike is
    found.

    **Arguments:**

    - `omega`: the signal-to-noise ratio, at least 0.
    - `memory`: the memory over p, positive.

    **Returns:**

    The eigenvalue, of the shape to which the arguments broadcast.

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> values = ino.forgetting_eigenvalue(omega=1.5, memory=[2.0, 20.0])
    >>> [round(float(value), 3) for value in values]
    [2.94, 2.542]
    ```
    """
    return _forgetting_eigenvalues(*_checked(omega, memory))


def _checked(omega: Any, memory: Any) -> list[Array]:
    require("omega", omega, lambda x: np.isfinite(x) & (x >= 0), "pass omega >= 0")
    remedy = "it must be positive, in units of p samples"
    require("memory", memory, lambda m: positive(m) | (m == np.inf), remedy)
    return broadcastable(omega=omega, memory=memory)


# Both are functions of u = 1/(memory omega), the inverse of how much the memory tells.


def _forgetting_overlap(omega: Real, memory: Real) -> Real:
    u, is_found = _inverse_information(omega, memory)
    omega = jnp.where(is_found, omega, 1)
    # The root is held off zero, where its derivative is infinite.
    mean_exp = _ratio(jnp.expm1(u), u)
    q2 = jnp.where(is_found, 1 + omega - mean_exp, 1) / (omega * mean_exp)
    return jnp.where(is_found, jnp.sqrt(q2), 0)


def _forgetting_eigenvalue(omega: Real, memory: Real) -> Real:
    u, is_found = _inverse_information(omega, memory)
    found = (1 + omega) / _ratio(-jnp.expm1(-u), u)
    return jnp.where(is_found, found, jnp.exp(_critical_u(memory)))


_forgetting_overlaps = jax.jit(jnp.vectorize(_forgetting_overlap))
_forgetting_eigenvalues = jax.jit(jnp.vectorize(_forgetting_eigenvalue))


def _inverse_information(omega: Real, memory: Real) -> tuple[Real, Array]:
    """Returns `1/(memory omega)`, and whether a spike is found; where not, any number."""
    information = memory * jnp.where(omega > 0, omega, 1)
    is_found = (_critical_u(memory) * information > 1) | jnp.isinf(memory)
    is_found = is_found & (omega > 0)
    return 1 / jnp.where(is_found, information, 1), is_found


def _critical_u(memory: Real) -> Real:
    """Returns the solution of `exp(u) - 1 - u = 1/memory`.

    The left side is convex and increasing, so Newton's iterates from the right come down to
    the root. They begin at bounds that are close to it: `u^2/2` is less than the left side,
    and `exp(u)` is less than `1 + a + 2 log(1 + a)` if `a = 1/memory` is above 1.
    """
    a = 1 / jnp.where(jnp.isinf(memory), 1, memory)
    u = jnp.where(a < 1, jnp.sqrt(2 * a), jnp.log1p(a + 2 * jnp.log1p(a)))
    for _ in range(6):
        series = u**2 * (1 / 2 + u * (1 / 6 + u * (1 / 24 + u / 120)))
        left = jnp.where(u < 0.05, series, jnp.expm1(u) - u)
        u = u - (left - a) / jnp.expm1(u)
    return jnp.where(jnp.isinf(memory), 0, u)


def _ratio(value: Real, u: Real) -> Real:
    """Returns `value / u`, which is 1 where u is 0."""
    return jnp.where(u > 0, value / jnp.where(u > 0, u, 1), 1)
