"""Spikes that turn: in p dimensions, and in the coordinates of the chain.

After a sample every spike gives up a part of its direction for a new one,

    xi_j' = keep xi_j + step eta_j,    keep = sqrt(1 - 2 delta/p),  step = sqrt(2 delta/p)

where the `eta_j` are orthogonal to each other and to all spikes, and otherwise uniformly
directed. The spikes stay orthogonal, and their overlaps with the past fall as
`exp(-delta t)`.
"""

from collections.abc import Sequence

import jax.numpy as jnp
from jaxtyping import Array

from .._types import Real, Scalar, Vector
from .basis import dot, triangular_factor


def _loss_and_step(turning: Real, p: Scalar) -> tuple[Real, Real]:
    """Returns `1 - keep`, without its cancellation, and `step`."""
    square = 2 * turning / p
    return square / (1 + jnp.sqrt(1 - square)), jnp.sqrt(square)


def turned_spikes(
    xis: tuple[Vector, ...], turning: Real, p: Scalar, zs: Sequence[Vector]
) -> tuple[Vector, ...]:
    """Returns the spikes after a sample.

    **Arguments:**

    - `xis`: the spikes, orthogonal to each other.
    - `turning`, `p`: the rate at which they turn, and the dimension.
    - `zs`: one standard normal vector for each spike.
    """
    loss, step = _loss_and_step(turning, p)
    etas: list[Vector] = []
    for z in zs:
        for known in (*xis, *etas):
            z = z - jnp.sum(z * known) / p * known
        etas.append(z * jnp.sqrt(p / jnp.sum(z * z)))
    return tuple(xi + (step * eta - loss * xi) for xi, eta in zip(xis, etas, strict=True))


def turned_coordinates(
    along: Sequence[Sequence[Real]],
    across: Sequence[Sequence[Real]],
    turning: Real,
    p: Scalar,
    draws: Sequence[tuple[Sequence[Array], Array]],
) -> tuple[list[list[Real]], list[list[Real]]]:
    """Returns the coordinates of vectors that stand still as the spikes turn.

    Of a vector with the coordinate `u_j` along spike j, and the product `g_j` with the
    direction of `eta_j`, the new coordinate is `keep u_j + step g_j`, and that along what
    spike j has left, `keep g_j - step u_j`.

    **Arguments:**

    - `along`: for each spike, the coordinates of all vectors.
    - `across`: for each vector, its column of the triangular matrix that has the inner
      products of what is orthogonal to the spikes.
    - `turning`, `p`: the rate at which the spikes turn, and the dimension.
    - `draws`: for each spike a standard normal vector orthogonal to the spikes: its
      coordinates along the directions of `across` and along the vectors of the spikes
      before it, and the squared length of the rest.

    **Returns:**

    The new `along` and `across`.
    """
    loss, step = _loss_and_step(turning, p)
    etas: list[list[Real]] = []
    for normals, rest in draws:
        eta = [*normals, jnp.sqrt(rest)]
        for known in etas:
            eta = _minus(eta, dot(known, eta), known)
        inverse = 1 / jnp.sqrt(dot(eta, eta))
        etas.append([inverse * x for x in eta])
    products = [[dot(eta, column) for column in across] for eta in etas]
    pairs = [list(zip(us, gs, strict=True)) for us, gs in zip(along, products, strict=True)]
    new_along = [[u + (step * g - loss * u) for u, g in row] for row in pairs]
    left = [[g - (loss * g + step * u) for u, g in row] for row in pairs]
    zero = jnp.zeros_like(across[0][0])
    columns = []
    for i, column in enumerate(across):
        rest = [*column, *[zero] * (len(etas[-1]) - len(column))]
        for eta, gs in zip(etas, products, strict=True):
            rest = _minus(rest, gs[i], eta)
        columns.append([*(row[i] for row in left), *rest])
    return new_along, triangular_factor(columns, [None] * len(columns[0]))


def _minus(a: Sequence[Real], factor: Real, b: Sequence[Real]) -> list[Real]:
    """Returns `a - factor b`, where `b` may be shorter."""
    changed = [x - factor * y for x, y in zip(a, b, strict=False)]
    return [*changed, *a[len(changed) :]]
