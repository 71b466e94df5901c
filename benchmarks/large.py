"""Times the chain at p = 1,000,000 over ten million steps, and compares it with the theory.

python -m benchmarks.large [--quick]
"""

import sys

import jax
import jax.random as jr
import numpy as np

import inopca_jax as ino

from .report import report, seconds


def main(quick: bool = False) -> None:
    p, t, trials = (100_000, 0.2, 20) if quick else (1_000_000, 10.0, 20)
    config = ino.Config(
        model=ino.SpikedModel(p), start=ino.WarmStart(0.3), ts=np.array([t])
    )
    runs = []
    best, compiling = seconds(
        lambda i: runs.append(ino.simulate(config, key=jr.key(i), trials=trials)), 1
    )
    with jax.enable_x64(True):
        theory = ino.mean_field(config)
    for name in ("q", "lam"):
        values = np.asarray(getattr(runs[-1], name)[:, 0], dtype=float)
        error = values.mean() - float(getattr(theory, name)[0])
        z = error / (values.std(ddof=1) / np.sqrt(trials))
        assert abs(z) < 5, (name, z)
    report(
        f"chain, {int(p * t):,} steps, mean within 5 standard errors of the ODE",
        ours=best,
        baseline=best,
        unit="s",
        p=p,
        trials=trials,
        dtype="float64",
        compile_seconds=round(compiling, 2),
    )


if __name__ == "__main__":
    main(quick="--quick" in sys.argv[1:])
