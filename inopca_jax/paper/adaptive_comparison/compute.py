"""The numbers of `fig:adaptive_comparison`."""

import numpy as np

import inopca_jax as ino

from ..learning_curves import OMEGA, TAU, TRIALS, Arrays, P, compute_cold_curves

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


def _with_changing_spike(rule: ino.AbstractRule) -> ino.Config:
    models = [
        ino.SpikedModel(p=P, omega=OMEGA, spike=spike)
        for spike in (ino.Uniform(), ino.Sparse())
    ]
    model = ino.Switching(models=models, times=[CHANGE])  # pyright: ignore
    return ino.Config(rule, model, ino.ColdStart(), np.linspace(0.0, T_MAX, 101))


def compute(quick: bool = False) -> Arrays:
    """Returns theory, mean gains and trials of the three algorithms, and the theory of
    INO-PCA at a constant rate."""
    arrays = compute_cold_curves(
        configs(quick),
        trials=TRIALS,
        seed=14,
        reference_until=None if quick else {ADAOJA: 6.0},
    )
    law, gain = ino.cold_start_law(_with_changing_spike(ino.InoPCA(TAU)))
    arrays[f"{CONSTANT}/theory/q"] = np.asarray(law.q)
    arrays[f"{CONSTANT}/gain"] = np.asarray(gain)
    return arrays
