"""How far apart two subspaces are, and how much of the data one captures."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._check import Checked, reals, require
from .._order_parameters.increments import root


def principal_angles(
    a: Checked[Float[Array | np.ndarray, "components p"]],
    b: Checked[Float[Array | np.ndarray, "components p"]],
) -> Float[Array, " components"]:
    """The angles between the spans of the rows of `a` and of `b`, in [0, pi/2], the
    smallest first.

    From their sines and their cosines: a cosine alone does not resolve an angle below
    the root of the precision. Differentiable, also where several angles are equal.
    """
    a, b = _finite("a", a), _finite("b", b)
    if a.ndim != 2 or a.shape != b.shape:
        raise ValueError(
            f"a and b of shapes {a.shape} and {b.shape} are not allowed: they have no "
            "distance. Pass two arrays of the same shape (components, p)."
        )
    a, b = (jnp.linalg.qr(rows.T)[0] for rows in (a, b))
    inner = jnp.matmul(a.T, b, precision="highest")
    cosines = jnp.linalg.svd(inner, compute_uv=False)
    beyond = b - jnp.matmul(a, inner, precision="highest")
    sines = jnp.linalg.svd(beyond, compute_uv=False)[::-1]
    return jnp.arctan2(sines, cosines)


def grassmann_distance(
    a: Checked[Float[Array | np.ndarray, "components p"]],
    b: Checked[Float[Array | np.ndarray, "components p"]],
) -> Float[Array, ""]:
    """The length of the geodesic between the spans of the rows: the root of the sum of
    the squares of the principal angles."""
    return root(jnp.sum(principal_angles(a, b) ** 2))


def captured_variance(
    components: Checked[Float[Array | np.ndarray, "components p"]],
    samples: Checked[Float[Array | np.ndarray, "samples p"]],
) -> Float[Array, ""]:
    """The share of the samples' variance that lies in the span of the rows."""
    components, samples = _finite("components", components), _finite("samples", samples)
    if components.ndim != 2 or samples.ndim != 2 or components.shape[1] != samples.shape[1]:
        raise ValueError(
            f"components of shape {components.shape} with samples of shape {samples.shape} "
            "are not allowed: pass (components, p) and (samples, p)."
        )
    basis = jnp.linalg.qr(components.T)[0]
    samples = samples - jnp.mean(samples, axis=0, keepdims=True)
    inside = jnp.matmul(samples, basis, precision="highest")
    return jnp.sum(inside**2) / jnp.sum(samples**2)


def _finite(name: str, value: Any) -> Array:
    """The array leaf for finite numbers."""
    leaf = reals(name, value)
    require(name, leaf, np.isfinite, "pass finite numbers")
    return leaf
