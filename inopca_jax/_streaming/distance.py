"""Distances between subspaces, and the share of variance that a subspace captures."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._check import Checked, reals, require
from .._numerics import root


def principal_angles(
    a: Checked[Float[Array | np.ndarray, "components p"]],
    b: Checked[Float[Array | np.ndarray, "components p"]],
) -> Float[Array, " components"]:
    """Returns the principal angles between the spans of the rows of `a` and of `b`.

    They are differentiable, also where several angles are equal.

    **Arguments:**

    - `a`, `b`: shape `(components, p)`. The rows span the subspaces, and need not be
        orthonormal.

    **Returns:**

    Shape `(components,)`: the angles in [0, pi/2], the smallest first.

    **Example:**

    ```pycon
    >>> import numpy as np
    >>> import inopca_jax as ino
    >>> e1, e2, e3 = np.eye(3)
    >>> angles = ino.principal_angles(np.stack([e1, e2]), np.stack([e1, e3]))
    >>> np.allclose(angles, [0.0, np.pi / 2], atol=1e-3)
    True
    ```
    """
    a, b = _finite("a", a), _finite("b", b)
    if a.ndim != 2 or a.shape != b.shape:
        raise ValueError(
            f"a and b of shapes {a.shape} and {b.shape} are not allowed: pass two arrays "
            "of the same shape (components, p)."
        )
    a, b = (jnp.linalg.qr(rows.T)[0] for rows in (a, b))
    inner = jnp.matmul(a.T, b, precision="highest")
    cosines = jnp.linalg.svd(inner, compute_uv=False)
    # A cosine alone does not resolve an angle below the root of the precision.
    residual = b - jnp.matmul(a, inner, precision="highest")
    sines = jnp.linalg.svd(residual, compute_uv=False)[::-1]
    return jnp.arctan2(sines, cosines)


def grassmann_distance(
    a: Checked[Float[Array | np.ndarray, "components p"]],
    b: Checked[Float[Array | np.ndarray, "components p"]],
) -> Float[Array, ""]:
    """Returns the geodesic distance of two subspaces on the Grassmannian.

    It is the root of the sum of the squares of the principal angles.

    **Arguments:**

    - `a`, `b`: shape `(components, p)`. The rows span the subspaces.

    **Returns:**

    The distance, a scalar.

    **Example:**

    ```pycon
    >>> import numpy as np
    >>> import inopca_jax as ino
    >>> e1, e2, e3 = np.eye(3)
    >>> round(float(ino.grassmann_distance(np.stack([e1, e2]), np.stack([e1, e3]))), 3)
    1.571
    ```
    """
    return root(jnp.sum(principal_angles(a, b) ** 2))


def captured_variance(
    components: Checked[Float[Array | np.ndarray, "components p"]],
    samples: Checked[Float[Array | np.ndarray, "samples p"]],
) -> Float[Array, ""]:
    """Returns the share of the samples' variance that lies in a subspace.

    **Arguments:**

    - `components`: shape `(components, p)`. The rows span the subspace.
    - `samples`: shape `(samples, p)`. Their mean is subtracted.

    **Returns:**

    The share, a scalar in [0, 1].

    **Example:**

    ```pycon
    >>> import numpy as np
    >>> import inopca_jax as ino
    >>> samples = np.array([[3.0, 0.0], [-3.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    >>> round(float(ino.captured_variance(np.array([[1.0, 0.0]]), samples)), 3)
    0.9
    ```
    """
    components, samples = _finite("components", components), _finite("samples", samples)
    if components.ndim != 2 or samples.ndim != 2 or components.shape[1] != samples.shape[1]:
        raise ValueError(
            f"components of shape {components.shape} with samples of shape {samples.shape} "
            "are not allowed: pass (components, p) and (samples, p)."
        )
    basis = jnp.linalg.qr(components.T)[0]
    samples = samples - jnp.mean(samples, axis=0, keepdims=True)
    coordinates = jnp.matmul(samples, basis, precision="highest")
    return jnp.sum(coordinates**2) / jnp.sum(samples**2)


def _finite(name: str, value: Any) -> Array:
    """Returns an argument as an array, if all its numbers are finite."""
    array = reals(name, value)
    require(name, array, np.isfinite, "pass finite numbers")
    return array
