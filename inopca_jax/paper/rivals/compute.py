"""The numbers of the figure `rivals`."""

import jax.random as jr
import numpy as np

import inopca_jax as ino

from ..claim import Arrays
from ..learning_curves import TAU, P, compute_curves, paper_config, to_arrays

T_MAX, POINTS = 30.0, 61
INO, OJA, ORACLE = "INO-PCA", "Oja", "oracle"
PUBLISHED = ("AdaOja, as published", "CCIPCA, as published")


def configs(quick: bool = False) -> dict[str, ino.Config]:
    """Returns the configs of the algorithms with a regular limit, then of those without."""
    rules = {
        INO: ino.InoPCA(TAU),
        OJA: ino.Oja(TAU),
        ORACLE: ino.AdaptiveInoPCA(),
        "AdaOja, b0 = p": ino.AdaOja(float(P)),
        "CCIPCA, t0 = 2": ino.CCIPCA(t0=2.0),
        PUBLISHED[0]: ino.AdaOja(),
        PUBLISHED[1]: ino.CCIPCA(),
    }
    return {
        name: paper_config(rule, t_max=T_MAX, points=POINTS) for name, rule in rules.items()
    }


def compute(quick: bool = False) -> Arrays:
    """Returns theory and trials of all; of the published algorithms with |q| for q, their
    mean gain, and the last overlap of each trial with its sign."""
    all_configs = configs()
    regular = {k: config for k, config in all_configs.items() if k not in PUBLISHED}
    arrays = compute_curves(regular, key=jr.key(7))
    for number, name in enumerate(PUBLISHED):
        config, key = all_configs[name], jr.fold_in(jr.key(8), number)
        runs = ino.simulate(config, key=key, trials=32 if quick else 128)
        theory, gain = ino.cold_start_law(config)
        arrays |= to_arrays(f"{name}/runs", runs.abs())
        # Without standard deviations: the drawing has no band.
        theory = ino.Trajectory(theory.ts, theory.q, theory.lam)
        arrays |= to_arrays(f"{name}/theory", theory)
        arrays[f"{name}/gain"] = np.asarray(gain)
        arrays[f"{name}/last"] = np.asarray(runs.q[:, -1])
    return arrays
