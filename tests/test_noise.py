"""The generator against its definition and against the laws it stands for."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from jax.extend.random import threefry_2x32
from scipy import stats

from inopca_jax import _noise

WORDS = jnp.array([0x13198A2E, 0x03707344], jnp.uint32)


def counters(n):
    return jnp.arange(n, dtype=jnp.uint32)


@jax.jit
def many_normals(words):
    c0 = counters(1 << 21)
    return jnp.stack(_noise.normals(words, c0, jnp.full_like(c0, 7)))


def test_the_hash_is_jax_threefry_bit_for_bit():
    n = 10_001
    c0 = jr.bits(jr.key(1), (n,), jnp.uint32)
    c1 = jr.bits(jr.key(2), (n,), jnp.uint32)
    expected = threefry_2x32(WORDS, jnp.concatenate([c0, c1]))
    assert np.array_equal(jnp.concatenate(_noise.threefry(WORDS, c0, c1)), expected)


def test_the_accelerators_hash_is_the_cpus():
    c0, c1 = counters(1000), counters(1000) ^ jnp.uint32(0xDEADBEEF)
    keys = [jnp.broadcast_to(w, c0.shape) for w in WORDS]
    one = _noise._threefry_unrolled(*keys, c0, c1)
    two = _noise._threefry_primitive(*keys, c0, c1)
    assert np.array_equal(jnp.stack(one), jnp.stack(two))


def test_normals_have_a_normals_moments_to_order_8():
    z = np.asarray(many_normals(WORDS), dtype=float).ravel()
    for order in range(1, 9):
        mean = stats.norm.moment(order)
        sd = np.sqrt(stats.norm.moment(2 * order) - mean**2)
        assert abs((z**order).mean() - mean) < 5 * sd / np.sqrt(z.size)


def test_normals_have_a_normals_distribution_and_tails():
    z = np.asarray(many_normals(WORDS)).ravel()
    assert stats.kstest(z, "norm").pvalue > 1e-3
    for level in (3.0, 4.0, 4.5, 5.0):
        for side in (z > level, z < -level):
            expected = z.size * stats.norm.sf(level)
            assert abs(side.sum() - expected) < 5 * np.sqrt(expected) + 1


def test_a_normal_is_the_quantile_of_its_word_out_to_the_last_bit():
    """An inverse, so exact word by word: the tail's probability is the lower 31 bits."""
    k = np.unique(np.geomspace(1, 2**31 - 1, 4000).astype(np.int64)) - 1
    z = np.asarray(_noise.normal(jnp.asarray(k, jnp.uint32)), dtype=float)
    exact = stats.norm.isf(k * 2.0**-32 + 2.0**-33)
    assert exact.max() > 6.2
    assert np.max(np.abs(z - exact)) < 5e-6
    flipped = _noise.normal(jnp.asarray(k + 2**31, jnp.uint32))
    assert np.array_equal(flipped, -z.astype(np.float32))


def test_normals_are_uncorrelated_across_words_counters_lanes_and_keys():
    n = 1 << 20
    c0 = counters(n)
    one, two = _noise.normals(WORDS, c0, jnp.zeros_like(c0))
    lane, _ = _noise.normals(WORDS, c0, jnp.ones_like(c0))
    key, _ = _noise.normals(_noise.words_of(jr.key(3)), c0, jnp.zeros_like(c0))
    pairs = [(one, two), (one, lane), (one, key), (one[1:], one[:-1]), (two[2:], one[:-2])]
    for a, b in pairs:
        a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
        assert abs(np.mean(a * b)) < 5 / np.sqrt(n)
        assert abs(np.mean((a**2 - 1) * (b**2 - 1))) < 5 * 2 / np.sqrt(n)


@pytest.mark.parametrize("p", [3, 4, 5, 10, 200, 10_000, 10_000_000])
def test_the_chi_square_has_its_law(p):
    draw = jax.jit(lambda w: _noise.chi_square(w, counters(1 << 18), 2, p - 2))
    x = np.asarray(draw(WORDS), dtype=float)
    law = stats.chi2(p - 2)
    assert stats.kstest(x, law.cdf).pvalue > 1e-3
    assert abs(x.mean() - law.mean()) < 5 * law.std() / np.sqrt(x.size)
    spread = np.sqrt((law.moment(4) if p < 100 else 3 * law.var() ** 2) / x.size)
    assert abs(x.var() - law.var()) < 8 * spread


def test_a_chi_square_does_not_depend_on_what_is_drawn_with_it():
    whole = _noise.chi_square(WORDS, counters(4096), 2, 3)
    part = _noise.chi_square(WORDS, counters(4096)[1000:1300], 2, 3)
    assert np.array_equal(part, whole[1000:1300])


def test_the_acceptance_test_keeps_its_digits_in_single_precision():
    e = np.concatenate([-np.geomspace(1e-6, 0.95, 300), np.geomspace(1e-6, 20, 300)])
    with jax.enable_x64(False):
        ours = np.asarray(_noise._log1p_rest(jnp.asarray(e, jnp.float32)), dtype=float)
    e = e.astype(np.float32).astype(np.longdouble)
    series = sum((-1) ** (n + 1) * e**n / n for n in range(4, 60))
    direct = np.log1p(e) - e + e**2 / 2 - e**3 / 3
    exact = np.where(np.abs(e) < 0.3, series, direct).astype(float)
    assert np.max(np.abs(ours / exact - 1)) < 1e-3
    # What acceptance compares is 3 d times this, and |e| < 7 c with 9 d c^2 = 1.
    d = 49 / (9 * np.asarray(e, dtype=float) ** 2)
    assert np.max(np.abs(3 * d * (ours - exact))) < 1e-4
