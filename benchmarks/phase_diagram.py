"""The phase diagram of INO-PCA: 64 x 64 cells of (omega, tau), 20 trials each, at the
paper's p = 10,000.

python -m benchmarks.phase_diagram [--quick]

Draws `benchmarks/phase_diagram.png` and checks it against the mean field. Stopped, it goes
on where it was: its store is `results/phase_diagram.zarr`.
"""

import sys
import tempfile
import time
from pathlib import Path

import jax.random as jr
import numpy as np

import inopca_jax as ino
from inopca_jax import plot

from .report import report

HERE = Path(__file__).parent


def main(quick: bool = False) -> None:
    side, p, t = (6, 500, 20.0) if quick else (64, 10_000, 50.0)
    taus, omegas = np.linspace(0.05, 2.0, side), np.linspace(0.05, 2.0, side)
    config = ino.Config(
        model=ino.SpikedModel(p), start=ino.WarmStart(0.5), ts=np.array([0.0, t])
    )
    grid = {"model.omega": omegas, "rule.tau": taus}
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder if quick else HERE.parent / "results") / "phase_diagram.zarr"
        begin = time.perf_counter()
        found = ino.sweep(
            config,
            grid,
            trials=20,
            key=jr.key(0),
            store=store,
            theory=True,
            progress=not quick,
        )
        taken = time.perf_counter() - begin
    # Where little is learned |q| is its scatter, of which the limit knows nothing.
    overlap, limit = found.abs_q_mean.values[..., -1], found.q_theory.values[..., -1]
    far = limit > 0.6
    off = np.abs(overlap - limit)[far].max()
    assert far.mean() > 0.3, far.mean()
    assert off < (0.1 if quick else 0.01), off
    if not quick:
        plot.save(plot.sweep(found), HERE / "phase_diagram.png")
    report(
        f"phase diagram, {side} x {side} cells, {int(p * t):,} steps a trial",
        ours=taken,
        baseline=taken,
        unit="s",
        p=p,
        trials=20,
        dtype="float64",
        largest_gap_to_theory=float(off),
        cells_compared=int(far.sum()),
    )


if __name__ == "__main__":
    main(quick="--quick" in sys.argv[1:])
