"""Learning curves at the paper's parameters: what most of its figures are made of.

The trials are the exact chain's, and the p-dimensional algorithm itself, which costs p
times as much, is their witness for a shorter time and in fewer trials.
"""

from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import jax.random as jr
import numpy as np

from .._batch import simulate
from .._cli import output
from .._config import Config
from .._engine import Stream
from .._model import AbstractSpike, SpikedModel, Uniform
from .._rule import AbstractRule
from .._start import AbstractStart, WarmStart
from .._trajectory import Trajectory
from ..plot import Curve

P, TAU, OMEGA, TRIALS = 10_000, 0.5, 1.0, 20

Arrays = dict[str, np.ndarray]

_RUNS, _WITNESS, _THEORY = "runs", "witness", "theory"
_SAVED = ("ts", "q", "lam", "q_std", "lam_std", "q_shift", "lam_shift")


def setting(
    rule: AbstractRule,
    *,
    t_max: float,
    points: int = 101,
    start: AbstractStart | None = None,
    spike: AbstractSpike | None = None,
    omega: float = OMEGA,
    p: int = P,
) -> Config:
    """The paper's defaults: p = 10,000, omega = 1, Example 1, q0 = 0.1, lam0 = 1."""
    return Config(
        rule=rule,
        model=SpikedModel(p=p, omega=omega, spike=spike or Uniform()),
        start=WarmStart(q0=0.1) if start is None else start,
        ts=np.linspace(0.0, t_max, points),
    )


def learned(
    configs: Mapping[str, Config],
    *,
    trials: int = TRIALS,
    seed: int = 0,
    witness: Mapping[str, float] | None = None,
    bands: bool = False,
) -> Arrays:
    """Theory, trials and witnesses of the configs, as arrays by the configs' names.

    `witness` has the time until which there is one, by name. Where trials may settle on
    either sign, as from a cold start, q stands for |q|. With `bands` the theory is that at
    finite p, with its predicted deviations; from a cold start it always is, as the limit
    never leaves q = 0.
    """
    found: Arrays = {}
    for number, (name, config) in enumerate(configs.items()):
        key, other = jr.split(jr.fold_in(jr.key(seed), number))
        keeps = output.keeps_sign(config)
        signed = lambda run, keeps=keeps: run if keeps else run.abs()
        found |= arrays(f"{name}/{_THEORY}", output.theory_of(config, bands or not keeps))
        runs = simulate(config, key=key, trials=trials)
        found |= arrays(f"{name}/{_RUNS}", signed(runs))
        if witness and name in witness:
            short = output.until(config, witness[name])
            few = simulate(short, key=other, trials=2, engine=Stream())
            found |= arrays(f"{name}/{_WITNESS}", signed(few))
    return found


def curves(found: Arrays) -> list[Curve]:
    """What `learned` has found, to be drawn."""
    names = [k.removesuffix(f"/{_RUNS}/ts") for k in found if k.endswith(f"/{_RUNS}/ts")]
    return [
        Curve(name, *(trajectory(found, f"{name}/{x}") for x in (_THEORY, _RUNS, _WITNESS)))
        for name in names
    ]


def arrays(name: str, run: Trajectory) -> Arrays:
    """What a run has, by `name`; `trajectory` is the way back."""
    fields = {field: getattr(run, field) for field in _SAVED}
    return {f"{name}/{k}": np.asarray(v) for k, v in fields.items() if v is not None}


def trajectory(found: Arrays, name: str) -> Any:
    """One of them, `"<config>/theory"`, `"<config>/runs"` or `"<config>/witness"`; None if
    it is not there."""
    if f"{name}/ts" not in found:
        return None
    have = {field: found.get(f"{name}/{field}") for field in _SAVED}
    return Trajectory(**{k: jnp.asarray(v) for k, v in have.items() if v is not None})
