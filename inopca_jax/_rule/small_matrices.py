"""Products and inverses of small matrices, entry by entry.

A simulation computes them once a sample, for many trials side by side. On a CPU XLA
vectorises operations on numbers over the trials, but those on small matrices within each
trial, which takes many times as long. Entry by entry the work is in numbers; of larger
matrices that would be too many operations to compile.
"""

from collections.abc import Sequence

import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Float

from .._types import Matrix, Real

_LARGEST = 4
"""Up to this size matrices are computed entry by entry."""


def entries(matrix: Matrix) -> list[list[Real]]:
    """Returns the rows of a matrix, as lists of numbers."""
    return [[matrix[i, j] for j in range(matrix.shape[1])] for i in range(len(matrix))]


def stack(rows: Sequence[Sequence[Real]]) -> Matrix:
    """Returns the matrix with these rows."""
    return jnp.stack([jnp.stack(row) for row in rows])


def product(a: Matrix, b: Matrix) -> Matrix:
    """Returns the product of two square matrices."""
    if len(a) > _LARGEST:
        return jnp.matmul(a, b, precision="highest")
    columns = list(zip(*entries(b), strict=True))
    return stack([[_dot(row, column) for column in columns] for row in entries(a)])


def apply(matrix: Matrix, vector: Float[Array, " r"]) -> Float[Array, " r"]:
    """Returns the product of a square matrix and a vector."""
    if len(matrix) > _LARGEST:
        return jnp.matmul(matrix, vector, precision="highest")
    numbers = [vector[j] for j in range(len(vector))]
    return jnp.stack([_dot(row, numbers) for row in entries(matrix)])


def inverse_factor(matrix: Matrix) -> Matrix:
    """Returns the upper triangular `U` with `U U^T` the inverse of a positive matrix.

    It is the inverse of the triangular factor `T` of Cholesky, `matrix = T^T T`: the
    columns of `V U` are those of `V`, made orthonormal in their order, if `matrix` is
    `V^T V`.
    """
    size = len(matrix)
    if size > _LARGEST:
        lower = jnp.linalg.cholesky(matrix)
        return solve_triangular(lower, jnp.eye(size, dtype=matrix.dtype), lower=True).T
    # The columns of the identity, made orthonormal in the product that `matrix` defines.
    zero = jnp.zeros_like(matrix[0, 0])
    rows, columns = entries(matrix), []
    for i in range(size):
        # The products of the i-th one with the columns before.
        shares = [_dot(column, rows[i]) for column in columns]
        square = rows[i][i]
        for share in shares:
            square = square - share**2
        scale = 1 / jnp.sqrt(square)
        rest = [_dot(shares[j:], [c[j] for c in columns[j:]]) for j in range(i)]
        columns.append([*(-scale * x for x in rest), scale])
    padded = [[*column, *[zero] * (size - len(column))] for column in columns]
    return stack(list(zip(*padded, strict=True)))


def inverse(matrix: Matrix) -> Matrix:
    """Returns the inverse of a symmetric positive matrix."""
    factor = inverse_factor(matrix)
    return product(factor, factor.T)


def _dot(a: Sequence[Real], b: Sequence[Real]) -> Real:
    """Returns the sum of the products of numbers, up to the end of the shorter row."""
    (first, *others) = [x * y for x, y in zip(a, b, strict=False)]
    return sum(others, first)
