"""Orthonormal bases: coordinates of few vectors, in p dimensions or in few."""

from collections.abc import Sequence

import jax.numpy as jnp
from jaxtyping import Array

from .._types import Real, Vector


def _without_projections(
    vector: Vector, basis: Sequence[Vector]
) -> tuple[list[Real], Vector]:
    """Returns the coordinates of a vector along a basis, and what they leave of it."""
    coordinates = [jnp.sum(vector * unit) for unit in basis]
    for coordinate, unit in zip(coordinates, basis, strict=True):
        vector = vector - coordinate * unit
    return coordinates, vector


def _unit(vector: Vector) -> Vector:
    return vector / jnp.sqrt(jnp.sum(vector**2))


def extend_basis(
    basis: Sequence[Vector], vectors: Sequence[Vector], fallbacks: Sequence[Vector]
) -> tuple[list[Vector], list[list[Real]]]:
    """Extends an orthonormal basis by one unit vector for each of some vectors, so that it
    spans them: the method of Gram and Schmidt, twice.

    **Arguments:**

    - `basis`: orthonormal vectors.
    - `vectors`: the vectors to be spanned.
    - `fallbacks`: directions that are taken where a vector lies in the span of those
      before it.

    **Returns:**

    The new unit vectors, and the coordinates of every vector along the basis and along the
    new unit vectors up to its own.
    """
    units, columns = list(basis), []
    for vector, fallback in zip(vectors, fallbacks, strict=True):
        coordinates, rest = _without_projections(vector, units)
        corrections, rest = _without_projections(rest, units)
        length = jnp.sqrt(jnp.sum(rest**2))
        # Below this, the rest is rounding error and points anywhere.
        eps = 100 * jnp.finfo(vector.dtype).eps
        is_new = length > eps * jnp.sqrt(jnp.sum(vector**2))
        sums = [a + b for a, b in zip(coordinates, corrections, strict=True)]
        columns.append([*sums, jnp.where(is_new, length, 0)])
        unit = _unit(jnp.where(is_new, rest, fallback))
        # Twice more, because a short rest keeps few digits of its orthogonality.
        for _ in range(2):
            unit = _unit(_without_projections(unit, units)[1])
        units.append(unit)
    return units[len(basis) :], columns


def triangular_factor(
    columns: Sequence[Sequence[Real]], weights: Sequence[Real | None]
) -> list[list[Real]]:
    """Returns the columns of an upper triangular R with `R^T R = A^T W A`, unrolled.

    **Arguments:**

    - `columns`: the columns of A.
    - `weights`: the diagonal of W, `None` for 1.
    """

    def product(a: Sequence[Real], b: Sequence[Real]) -> Real:
        terms = []
        for x, y, weight in zip(a, b, weights, strict=True):
            term = x**2 if x is y else x * y
            terms.append(term if weight is None else term * weight)
        return _sum(terms)

    units, triangle = [], []
    for i, vector in enumerate(columns):
        entries = []
        for unit in units:
            entry = product(unit, vector)
            vector = [x - entry * u for x, u in zip(vector, unit, strict=True)]
            entries.append(entry)
        length = jnp.sqrt(product(vector, vector))
        triangle.append([*entries, length])
        if i < len(columns) - 1:
            inverse = 1 / jnp.where(length > 0, length, 1)
            units.append([x * inverse for x in vector])
    return triangle


def dot(a: Sequence[Array], b: Sequence[Array]) -> Array:
    """Returns the sum of the products of numbers, up to the end of the shorter row."""
    squares = a is b
    return _sum([x**2 if squares else x * y for x, y in zip(a, b, strict=False)])


def _sum(terms: Sequence[Array]) -> Array:
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total
