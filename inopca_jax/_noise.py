"""Normals and chi-squares from a counter, fast on CPU and accelerator.

Every number is a function of a key and a counter (the step, and a lane within it), so
a path does not depend on how its steps are cut into chunks. The counter is hashed by
Threefry-2x32, the generator of `jax.random`: on an accelerator by JAX's own primitive,
on a CPU by the same rounds written out, which XLA vectorises where it runs the
primitive as a loop. Both output words are used. Float32 is enough for noise; users of
another precision convert.
"""

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
    """The two words that key the counters below, from a key of any of JAX's kinds."""
    return jr.bits(key, (2,), jnp.uint32)


def threefry(
    words: Words, c0: UInt32[Array, "*n"], c1: UInt32[Array, "*n"]
) -> tuple[UInt32[Array, "*n"], UInt32[Array, "*n"]]:
    """Threefry-2x32 with 20 rounds of the counter `(c0, c1)`."""
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
    # Through int32, which CPUs convert in one instruction: callers pass 31 bits.
    return word.astype(jnp.int32).astype(jnp.float32)


def uniform(word: UInt32[Array, "*n"]) -> Float32[Array, "*n"]:
    """A uniform variable in the open interval (0, 1)."""
    return _float(word >> jnp.uint32(8)) * 2.0**-24 + 2.0**-25


# The quantile over x = 1 - 2m, as polynomials in w = -log(1 - x^2). The middle, w < 5,
# is from Giles, "Approximating the erfinv function" (2010), times sqrt(2). His tail ends
# where single precision's x does, so ours is a fit in sqrt(w) out to the last of the 31
# bits, with an error below 3e-6.
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
    """A standard normal variable, by inversion.

    The top bit is the sign and the other 31 give the tail's probability `m`, so that
    `1 - x^2 = 4 m (1 - m)` keeps its digits where `x` would round to 1: the tails are
    right to 6.3 standard deviations, where `lax.erf_inv` of the same bits ends at 5.4.
    """
    m = _float(word & jnp.uint32(0x7FFFFFFF)) * 2.0**-32 + 2.0**-33
    w = -jnp.log(4 * m * (1 - m))
    ratio = jnp.where(w < 5, _horner(_MIDDLE, w - 2.5), _horner(_TAIL, jnp.sqrt(w) - 3.47))
    z = (1 - 2 * m) * ratio
    return jnp.where(word >> jnp.uint32(31) == 0, z, -z)


def _horner(coefficients: tuple[float, ...], x: Float32[Array, "*n"]) -> Array:
    value = jnp.full_like(x, coefficients[0])
    for c in coefficients[1:]:
        value = value * x + c
    return value


def normals(
    words: Words, c0: UInt32[Array, "*n"], c1: UInt32[Array, "*n"]
) -> tuple[Float32[Array, "*n"], Float32[Array, "*n"]]:
    """Two independent standard normals for each counter.

    XLA's CPU compiler hashes once for each of the two: to store the words and read them
    again (`optimization_barrier`) was measured to be no faster.
    """
    w0, w1 = threefry(words, c0, c1)
    return normal(w0), normal(w1)


def chi_square(
    words: Words, c0: UInt32[Array, "*n"], lane: int, dof: int
) -> Float32[Array, "*n"]:
    """A chi-square variable of `dof >= 1` for each counter, exact in law.

    Marsaglia and Tsang's rejection; attempt `j` uses the lane `lane + j`, so that a
    value does not depend on what else is drawn with it. They accept if
    `log u < x^2/2 + d - d v + d log v`, `v = (1+cx)^3`. With `e = cx` and `9 d c^2 = 1`
    all up to `e^3` cancels, and `z = 3 d (log(1+e) - e + e^2/2 - e^3/3)` is left: the
    textbook form would be all rounding error at large `d`.
    """
    if dof == 1:  # A gamma variable of shape 1/2, which the method does not cover.
        return normals(words, c0, jnp.full_like(c0, lane))[0] ** 2

    d = dof / 2 - 1 / 3
    c = 1 / np.sqrt(9 * d).item()

    def propose(attempt: UInt32[Array, ""]) -> tuple[Array, Array, Array]:
        w0, w1 = threefry(words, c0, jnp.full_like(c0, lane) + attempt)
        e = c * normal(w0)
        return 2 * d * (1 + e) ** 3, e, uniform(w1)

    def again(carry):
        attempt, value, done = carry
        proposal, e, u = propose(attempt)
        accepted = (e > -1) & (jnp.log(u) < 3 * d * _log1p_rest(e))
        return attempt + 1, jnp.where(done, value, proposal), done | accepted

    # log u <= u - 1, so u < 1 + z is enough, and z has a series where |e| is small: at
    # large dof the first attempt is settled without a logarithm for all but one in
    # about 10 dof. Only if one is not does the loop run, and look at it again.
    value, e, u = propose(jnp.uint32(0))
    settled = (jnp.abs(e) < _SMALL) & (u < 1 + 3 * d * _log1p_series(e))
    carry = (jnp.uint32(0), value, settled)
    _, value, _ = lax.while_loop(lambda carry: ~jnp.all(carry[2]), again, carry)
    return value


_SMALL = 0.125
_SERIES = tuple((-1.0) ** (n + 1) / n for n in range(12, 3, -1))


def _log1p_rest(e: Float32[Array, "*n"]) -> Float32[Array, "*n"]:
    """`log(1+e) - e + e^2/2 - e^3/3`, by its series where the difference cancels."""
    small = jnp.abs(e) < _SMALL
    x = jnp.maximum(jnp.where(small, 0.0, e), -1 + 2.0**-24)
    direct = jnp.log1p(x) - x + x**2 / 2 - x**3 / 3
    return jnp.where(small, _log1p_series(jnp.where(small, e, 0.0)), direct)


def _log1p_series(e: Float32[Array, "*n"]) -> Float32[Array, "*n"]:
    return _horner(_SERIES, e) * (e * e) ** 2
