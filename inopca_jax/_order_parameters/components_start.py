"""The start of several components among several spikes."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._model import SpikedModel
from .._rule import AbstractAlgorithm
from .._start import AbstractGaussianStart, AbstractStart
from .initial import start_moments


def start_mixture(
    rule: AbstractAlgorithm,
    model: SpikedModel,
    start: AbstractGaussianStart,
    components: int,
) -> tuple[
    Float[Array, "spikes components"],
    Float[Array, " components"],
    Float[Array, " components"],
]:
    """Returns `(c, s, lam0)`: component i is proportional to `sum_j c_ji xi_j + s_i z_i`
    with independent `z_i ~ N(0, I)`, and has the norm `lam0_i`."""
    _, lam0 = start_moments(rule, model, start)
    dtype, shape = lam0.dtype, (model.spikes, components)
    overlaps, scales = (a.astype(dtype) for a in start.mixture())
    if overlaps.ndim < 2:
        matched = np.arange(min(shape))
        diagonal = jnp.zeros(shape, dtype).at[matched, matched]
        scales = jnp.ones(components, dtype).at[matched].set(scales)
        overlaps = diagonal.set(overlaps)
    if model.spikes > 1:
        # From the order of strength to that of the model.
        overlaps = overlaps[jnp.argsort(model.strongest_first())]
    return overlaps, scales, jnp.broadcast_to(lam0, (components,))


def strongest_overlaps(
    rule: AbstractAlgorithm, model: SpikedModel, start: AbstractStart, components: int
) -> Float[Array, "matched components"]:
    """Returns the overlaps at the start with the spikes that the components are to find,
    the strongest first."""
    if not isinstance(start, AbstractGaussianStart):
        return start_moments(rule, model, start)[0].reshape(1, 1)
    overlaps = start_mixture(rule, model, start, components)[0]
    return overlaps[model.strongest_first()[: min(overlaps.shape)]]
