"""Counter-based normal and chi-square variables, fast on CPUs and accelerators.

Every number is a function of a key and a counter (the step, and a lane within it), so a
trajectory does not depend on how its steps are cut into chunks. The counter is hashed by
Threefry-2x32, the generator of `jax.random`: on an accelerator by JAX's own primitive, on a
CPU by the same rounds written in `jnp`, which XLA vectorises, while it runs the primitive
as a loop. Both output words are used. All noise is float32; callers convert it.
"""

from typing import Any

import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax import lax
from jax.extend.random import threefry2x32_p
from jaxtyping import Array, Float32, UInt32

from ._types import TrialKey, Words

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA


def words_of(key: TrialKey) -> Words:
    """Returns the two key words of `threefry`, from a key of `jax.random` of any kind."""
    return jr.bits(key, (2,), jnp.uint32)


def threefry(
    words: Words, c0: UInt32[Array, "*n"], c1: UInt32[Array, "*n"]
) -> tuple[UInt32[Array, "*n"], UInt32[Array, "*n"]]:
    """Returns the two words of Threefry-2x32, with 20 rounds, of the counter `(c0, c1)`."""
    k0 = jnp.broadcast_to(words[0], c0.shape)
    k1 = jnp.broadcast_to(words[1], c0.shape)
    return lax.platform_dependent(
        k0, k1, c0, c1, cpu=_threefry_unrolled, default=_threefry_primitive
    )


def _threefry_primitive(k0, k1, c0, c1):
    w0, w1 = threefry2x32_p.bind(k0, k1, c0, c1)
    return w0, w1


def _threefry_unrolled(k0, k1, x0, x1):
    keys = (k0, k1, k0 ^ k1 ^ jnp.uint32(_PARITY))
    x0, x1 = x0 + keys[0], x1 + keys[1]
    for i in range(5):
        for r in _ROTATIONS[i % 2]:
            x0 = x0 + x1
            x1 = (x1 << jnp.uint32(r)) | (x1 >> jnp.uint32(32 - r))
            x1 = x1 ^ x0
        x0 = x0 + keys[(i + 1) % 3]
        x1 = x1 + keys[(i + 2) % 3] + jnp.uint32(i + 1)
    return x0, x1


def _float(word: UInt32[Array, "*n"]) -> Float32[Array, "*n"]:
    # Through int32, which CPUs convert in one instruction; callers pass at most 31 bits.
    return word.astype(jnp.int32).astype(jnp.float32)


def uniform(word: UInt32[Array, "*n"]) -> Float32[Array, "*n"]:
    """Returns a uniform variable in the open interval (0, 1)."""
    return _float(word >> jnp.uint32(8)) * 2.0**-24 + 2.0**-25


# Coefficients of the normal quantile divided by x = 1 - 2m, as polynomials in
# w = -log(1 - x^2). Those of the middle, w < 5, are from Giles, "Approximating the erfinv
# function" (2010), times sqrt(2). His tail ends where x rounds to 1 in single precision, so
# ours is a fit in sqrt(w), as far as 31 bits of m reach, with an error below 3e-6.
_MIDDLE = tuple(
    np.sqrt(2).item() * c
    for c in (
        2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
        -0.00125372503, -0.00417768164, 0.246640727, 1.50140941,
    )
)  # fmt: skip
_TAIL = (
    -0.000247955524, 0.000840104278, -0.00122506421, 0.00160541886, -0.00304188839,
    0.00492468646, 1.42433991, 4.6743537,
)  # fmt: skip


def normal(word: UInt32[Array, "*n"]) -> Float32[Array, "*n"]:
    """Returns a standard normal variable, by inversion.

    The top bit is the sign and the other 31 give the tail's probability `m`, so that
    `1 - x^2 = 4 m (1 - m)` keeps its digits where `x` would round to 1: the tails are
    accurate to 6.3 standard deviations, where `lax.erf_inv` of the same bits ends at 5.4.
    """
    m = _float(word & jnp.uint32(0x7FFFFFFF)) * 2.0**-32 + 2.0**-33
    w = -jnp.log(4 * m * (1 - m))
    ratio = jnp.where(w < 5, _horner(_MIDDLE, w - 2.5), _horner(_TAIL, jnp.sqrt(w) - 3.47))
    z = (1 - 2 * m) * ratio
    return jnp.where(word >> jnp.uint32(31) == 0, z, -z)


def _horner(coefficients: tuple[float, ...], x: Float32[Array, "*n"]) -> Array:
    """Returns the polynomial with these coefficients, the highest power first."""
    value = jnp.full_like(x, coefficients[0])
    for c in coefficients[1:]:
        value = value * x + c
    return value


def normals(
    words: Words, c0: UInt32[Array, "*n"], c1: UInt32[Array, "*n"]
) -> tuple[Float32[Array, "*n"], Float32[Array, "*n"]]:
    """Returns two independent standard normal variables for each counter.

    XLA's CPU compiler computes the hash for each of the two again. To store the words
    (`optimization_barrier`) was measured to be no faster.
    """
    w0, w1 = threefry(words, c0, c1)
    return normal(w0), normal(w1)


def chi_square(
    words: Words, c0: UInt32[Array, "*n"], lane: int, dof: Any
) -> Float32[Array, "*n"]:
    """Returns a chi-square variable of `dof >= 1` for each counter, exact in law.

    By Marsaglia and Tsang's rejection method. Attempt `j` uses the lane `lane + j`, so that
    a value does not depend on the others in the array. A proposal is accepted if
    `log u < x^2/2 + d - d v + d log v`, where `v = (1+cx)^3`. With `e = cx` and
    `9 d c^2 = 1` the terms up to `e^3` cancel, and the right-hand side is
    `z = 3 d (log(1+e) - e + e^2/2 - e^3/3)`. At large `d` the textbook form would lose all
    digits to rounding.

    **Arguments:**

    - `words`: the key.
    - `c0`: the counters, of any shape.
    - `lane`: the first lane of the second counter that may be used.
    - `dof`: the degrees of freedom, one number, which may be traced.
    """
    dof = jnp.asarray(dof, jnp.result_type(float))
    d, c = dof / 2 - 1 / 3, 1 / jnp.sqrt(9 * (dof / 2 - 1 / 3))
    d, c = d.astype(jnp.float32), c.astype(jnp.float32)
    # A gamma variable of shape 1/2, which the method does not cover: the square of a
    # normal.
    is_one = dof < 1.5

    def propose(attempt: UInt32[Array, ""]) -> tuple[Array, Array, Array]:
        w0, w1 = threefry(words, c0, jnp.full_like(c0, lane) + attempt)
        e = c * normal(w0)
        return 2 * d * (1 + e) ** 3, e, uniform(w1)

    def attempt_again(carry):
        attempt, value, done = carry
        proposal, e, u = propose(attempt)
        accepted = (e > -1) & (jnp.log(u) < 3 * d * _log1p_rest(e))
        proposal = jnp.where(is_one, (e / c) ** 2, proposal)
        return attempt + 1, jnp.where(done, value, proposal), done | accepted | is_one

    # As log u <= u - 1, u < 1 + z is sufficient, and where |e| is small z is a series: at
    # large dof the first attempt is accepted without a logarithm for all but one in about
    # 10 dof. The loop runs only if one is not, and tests that one again.
    value, e, u = propose(jnp.uint32(0))
    accepted = (jnp.abs(e) < _SMALL) & (u < 1 + 3 * d * _log1p_series(e)) & ~is_one
    carry = (jnp.uint32(0), value, accepted)
    _, value, _ = lax.while_loop(lambda carry: ~jnp.all(carry[2]), attempt_again, carry)
    return value


_SMALL = 0.125
_SERIES = tuple((-1.0) ** (n + 1) / n for n in range(12, 3, -1))


def _log1p_rest(e: Float32[Array, "*n"]) -> Float32[Array, "*n"]:
    """Returns `log(1+e) - e + e^2/2 - e^3/3`, by its series where the terms cancel."""
    small = jnp.abs(e) < _SMALL
    x = jnp.maximum(jnp.where(small, 0.0, e), -1 + 2.0**-24)
    direct = jnp.log1p(x) - x + x**2 / 2 - x**3 / 3
    return jnp.where(small, _log1p_series(jnp.where(small, e, 0.0)), direct)


def _log1p_series(e: Float32[Array, "*n"]) -> Float32[Array, "*n"]:
    """Returns the first terms of the series of `_log1p_rest`, for `|e| < _SMALL`."""
    return _horner(_SERIES, e) * (e * e) ** 2
