"""Compares the normal and chi-square generators with those of `jax.random`.

python -m benchmarks.noise [--quick]

Both sides run on JAX's default backend.
"""

import sys

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from inopca_jax._noise import chi_square, normals, words_of

from .report import report, seconds


def main(quick: bool = False) -> None:
    n, repeats = (2**14, 1) if quick else (2**22, 20)
    counters = jnp.arange(n // 2, dtype=jnp.uint32)
    facts = dict(p=None, trials=None, dtype="float32", unit="ns per number")

    ours = jax.jit(lambda w: normals(w, counters, jnp.zeros_like(counters)))
    baseline = jax.jit(lambda key: jr.normal(key, (n,)))
    for draw in (jnp.concatenate(ours(words_of(jr.key(1)))), baseline(jr.key(1))):
        assert abs(float(draw.mean())) < 5 / np.sqrt(n)
        assert abs(float(draw.var()) - 1) < 5 * np.sqrt(2 / n)
    our_time, _ = seconds(lambda i: ours(words_of(jr.key(i))), repeats)
    baseline_time, _ = seconds(lambda i: baseline(jr.key(i)), repeats)
    report(
        "normals vs jax.random.normal",
        ours=our_time / n * 1e9,
        baseline=baseline_time / n * 1e9,
        **facts,
    )

    # Fewer numbers, because jax.random's generator of chi-squares is slow.
    dof, n = 9_998, n // 64
    counters = jnp.arange(n, dtype=jnp.uint32)
    ours = jax.jit(lambda w: chi_square(w, counters, 0, dof))
    baseline = jax.jit(lambda key: jr.chisquare(key, dof, (n,)))
    for draw in (ours(words_of(jr.key(1))), baseline(jr.key(1))):
        assert abs(float(draw.mean()) - dof) < 5 * np.sqrt(2 * dof / n)
    our_time, _ = seconds(lambda i: ours(words_of(jr.key(i))), repeats)
    baseline_time, _ = seconds(lambda i: baseline(jr.key(i)), repeats)
    name = "chi-squares (9,998 degrees) vs jax.random.chisquare"
    report(name, ours=our_time / n * 1e9, baseline=baseline_time / n * 1e9, **facts)


if __name__ == "__main__":
    main(quick="--quick" in sys.argv[1:])
