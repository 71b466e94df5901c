"""The numbers of `fig:adaptive_comparison`."""

import numpy as np

import inopca_jax as ino

from ..claim import Arrays
from ..learning_curves import OMEGA, REFERENCE_P, TAU, P, compute_overlaps

T_MAX, CHANGE = 100.0, 50.0
ADAPTIVE, ADAOJA, CCIPCA = "Adaptive INO-PCA", "AdaOja", "CCIPCA"
CONSTANT = "INO-PCA, tau = 0.5"


def configs(quick: bool = False) -> dict[str, ino.Config]:
    """Returns the configs of the three algorithms, with the same changing spike."""
    rules = {
        ADAPTIVE: ino.AdaptiveInoPCA(),
        ADAOJA: ino.AdaOja(),
        CCIPCA: ino.CCIPCA(4.0),
    }
    return {name: _with_changing_spike(rule) for name, rule in rules.items()}


def _with_changing_spike(rule: ino.AbstractRule, p: int = P) -> ino.Config:
    models = [
        ino.SpikedModel(p=p, omega=OMEGA, spike=spike)
        for spike in (ino.Uniform(), ino.Sparse())
    ]
    model = ino.Switching(models=models, times=[CHANGE])  # pyright: ignore
    return ino.Config(rule, model, ino.ColdStart(), np.linspace(0.0, T_MAX, 101))


def compute(quick: bool = False) -> Arrays:
    """Returns theory, mean gains and trials of the three algorithms, and the theory of
    INO-PCA at a constant rate."""
    reference = _with_changing_spike(ino.AdaOja(), REFERENCE_P)
    arrays = compute_overlaps(configs(), seed=14, reference=None if quick else reference)
    law, _ = ino.cold_start_law(_with_changing_spike(ino.InoPCA(TAU)))
    return arrays | {f"{CONSTANT}/theory/q": np.asarray(law.q)}
