"""Simulates the phase diagram of INO-PCA: 64 x 64 cells of (omega, tau) at p = 10,000.

python -m benchmarks.phase_diagram [--quick]

Each cell has 20 trials. The script compares the overlaps with the mean field and draws
`benchmarks/phase_diagram.png`. If it is interrupted, the next call continues from its
store, `results/phase_diagram.zarr`.
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
        dataset = ino.sweep(
            config,
            grid,
            trials=20,
            key=jr.key(0),
            store=store,
            theory=True,
            progress=not quick,
        )
        duration = time.perf_counter() - begin
    overlap, theory = dataset.abs_q_mean.values[..., -1], dataset.q_theory.values[..., -1]
    # Where the overlap is small, |q| is mostly scatter, which the mean field does not have.
    is_compared = theory > 0.6
    largest_gap = np.abs(overlap - theory)[is_compared].max()
    assert is_compared.mean() > 0.3, is_compared.mean()
    assert largest_gap < (0.1 if quick else 0.01), largest_gap
    if not quick:
        plot.save(plot.sweep(dataset), HERE / "phase_diagram.png")
    report(
        f"phase diagram, {side} x {side} cells, {int(p * t):,} steps a trial",
        ours=duration,
        baseline=duration,
        unit="s",
        p=p,
        trials=20,
        dtype="float64",
        largest_gap_to_theory=float(largest_gap),
        cells_compared=int(is_compared.sum()),
    )


if __name__ == "__main__":
    main(quick="--quick" in sys.argv[1:])
