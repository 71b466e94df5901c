"""Small pieces of floating-point arithmetic."""

from jaxtyping import Array, Float


def fast_two_sum(
    a: Float[Array, "*n"], b: Float[Array, "*n"]
) -> tuple[Float[Array, "*n"], Float[Array, "*n"]]:
    """The rounded sum of `a` and `b`, and what the rounding leaves out of it (Dekker).

    Added to the next change, it keeps a long sum of small changes right. It is exact where
    `b` is the smaller one, and elsewhere right to a unit in the last place of `b`.
    """
    total = a + b
    return total, b - (total - a)
