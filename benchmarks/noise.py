"""Normals and chi-squares against `jax.random`'s, on the backend at hand.

python -m benchmarks.noise [--quick]
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
    facts = dict(p=None, trials=None, dtype="float32", unit="ns a number")

    ours = jax.jit(lambda w: normals(w, counters, jnp.zeros_like(counters)))
    theirs = jax.jit(lambda key: jr.normal(key, (n,)))
    for draw in (jnp.concatenate(ours(words_of(jr.key(1)))), theirs(jr.key(1))):
        assert abs(float(draw.mean())) < 5 / np.sqrt(n)
        assert abs(float(draw.var()) - 1) < 5 * np.sqrt(2 / n)
    mine, _ = seconds(lambda i: ours(words_of(jr.key(i))), repeats)
    other, _ = seconds(lambda i: theirs(jr.key(i)), repeats)
    report(
        "normals vs jax.random.normal",
        ours=mine / n * 1e9,
        baseline=other / n * 1e9,
        **facts,
    )

    dof, n = 9_998, n // 64  # jax.random's is slow enough for a smaller sample
    counters = jnp.arange(n, dtype=jnp.uint32)
    ours = jax.jit(lambda w: chi_square(w, counters, 0, dof))
    theirs = jax.jit(lambda key: jr.chisquare(key, dof, (n,)))
    for draw in (ours(words_of(jr.key(1))), theirs(jr.key(1))):
        assert abs(float(draw.mean()) - dof) < 5 * np.sqrt(2 * dof / n)
    mine, _ = seconds(lambda i: ours(words_of(jr.key(i))), repeats)
    other, _ = seconds(lambda i: theirs(jr.key(i)), repeats)
    name = "chi-squares (9,998 degrees) vs jax.random.chisquare"
    report(name, ours=mine / n * 1e9, baseline=other / n * 1e9, **facts)


if __name__ == "__main__":
    main(quick="--quick" in sys.argv[1:])
