"""Trials and the predicted standard deviations, from warm and from cold starts."""

import jax.random as jr

import inopca_jax as ino

from ..claim import Arrays
from ..learning_curves import TAU, UNLEARNED_NORM, P, paper_config, to_arrays

RULES = {"INO-PCA": ino.InoPCA, "Oja": ino.Oja}
SMALL_P = 2000
STARTS = {"q0 = 0.3, p = 2,000": (0.3, SMALL_P), "q0 = 0.1, p = 10,000": (0.1, P)}
PAPERS_START = f"INO-PCA, {list(STARTS)[-1]}"
COLD, COLD_SMALL_P = "INO-PCA, cold", "INO-PCA, cold, p = 2,000"
SETTLED, RESCALED = "INO-PCA, cold, lam settled", "Oja, cold, rescaled"


def configs(quick: bool = False) -> dict[str, ino.Config]:
    """Returns a config for each rule and start; then cold starts, at the paper's p and at
    the smaller p of the search phase."""

    def config(rule: ino.AbstractRule, q0: float, p: int, lam0: float = 1.0) -> ino.Config:
        # A warm start without overlap is a cold one, and uses the same compiled program as
        # the others.
        start = ino.WarmStart(q0, lam0)
        return paper_config(rule, t_max=24.0, points=41, start=start, p=p)

    warm = {
        f"{name}, {start}": config(rule(TAU), q0, p)
        for name, rule in RULES.items()
        for start, (q0, p) in STARTS.items()
    }
    return warm | {
        COLD: config(ino.InoPCA(TAU), 0.0, P),
        COLD_SMALL_P: config(ino.InoPCA(TAU), 0.0, SMALL_P),
        SETTLED: config(ino.InoPCA(TAU), 0.0, SMALL_P, UNLEARNED_NORM),
        RESCALED: config(ino.Oja(TAU / UNLEARNED_NORM), 0.0, SMALL_P),
    }


def compute(quick: bool = False) -> Arrays:
    """Returns trials of all configs, and from warm starts theory with its deviations."""
    arrays: Arrays = {}
    for number, (name, config) in enumerate(configs(quick).items()):
        small = int(config.model.p) == SMALL_P
        trials = (256 if small else 96) if quick else (640 if small else 320)
        runs = ino.simulate(config, key=jr.fold_in(jr.key(11), number), trials=trials)
        arrays |= to_arrays(f"{name}/runs", runs)
        if ino.keeps_sign(config):
            arrays |= to_arrays(f"{name}/theory", ino.fluctuations(config))
    return arrays
