"""The best that anything can do which forgets: exponentially weighted PCA in closed form."""

import jax
import jax.numpy as jnp
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
    several spikes has this overlap with its eigenvector. `Sketch(memory=p * memory)` comes
    close to it, and it is the bound for all that forgets at that pace.

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
    """Returns the eigenvalue that exponentially weighted PCA finds for a spike, for large p.

    The weights add up to 1. Where the spike is found (`forgetting_overlap` is positive) the
    eigenvalue is larger than the true `1 + omega` by the noise that it takes in:

        (1 + omega)/(memory omega (1 - exp(-1/(memory omega))))

    Where it is not found it is the edge of the noise's own eigenvalues, which is that
    formula at the omega from which on a spike is found.

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


def _checked(omega: ArrayLike, memory: ArrayLike) -> list[Array]:
    require("omega", omega, lambda x: jnp.isfinite(x) & (x >= 0), "pass omega >= 0")
    remedy = "it must be positive; in units of p samples"
    require("memory", memory, lambda m: positive(m) | (m == jnp.inf), remedy)
    return broadcastable(omega=omega, memory=memory)
