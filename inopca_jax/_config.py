"""The one pytree that everything takes."""

from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array

from ._check import as_times, require, require_instance
from ._model import AbstractModel, SpikedModel
from ._pickling import Pickled
from ._rule import AbstractRule, InoPCA
from ._schedule import AbstractSchedule, Constant, Harmonic, Interpolated
from ._start import AbstractDensityStart, AbstractStart, WarmStart
from ._types import Times, part


def _paper_times() -> np.ndarray:
    return np.linspace(0.0, 50.0, 101)


class Config(Pickled):
    """What to run: a rule on a model from a start, observed at times `ts`.

    Without arguments, the paper's defaults. `p` and the shape of `ts` are static;
    every other number is an array leaf, so a sweep is a `vmap` over configs and
    tuning a `grad` with respect to one.
    """

    rule: AbstractRule = eqx.field(
        converter=part("rule", AbstractRule), default_factory=InoPCA
    )
    model: AbstractModel = eqx.field(
        converter=part("model", AbstractModel), default_factory=SpikedModel
    )
    start: AbstractStart = eqx.field(
        converter=part("start", AbstractStart), default_factory=WarmStart
    )
    ts: Times = eqx.field(converter=as_times("ts"), default_factory=_paper_times)

    def __check_init__(self):
        require_instance("rule.tau", self.rule.tau, AbstractSchedule)
        _require_times(self.ts)
        require_stable(self.rule.tau, self.model.float_p)
        if isinstance(self.start, AbstractDensityStart):
            self.start.require_law(self.model.phases()[0].spike)


def _require_times(ts: Any) -> None:
    if ts.ndim != 1 or not ts.size:
        raise ValueError(
            f"ts of shape {ts.shape} is not allowed: pass at least one time, in one axis."
        )
    require("ts", ts, np.isfinite, "every time must be finite")
    require("ts", ts, lambda x: x >= 0, "times start at 0")
    require("ts", ts, lambda x: np.diff(x) >= 0, "times must be sorted")


def require_stable(schedule: AbstractSchedule, p: int | float) -> None:
    """Refuses a rate of 2p or more, at which the factor 1 - tau/p of the old estimate is
    below -1."""
    for tau in known_rates(schedule, p, 0.0):
        require(
            "tau",
            tau,
            lambda x: x < 2 * p,
            f"at tau >= 2p = {2 * p:.16g} one sample outweighs the estimate and every step "
            "overshoots; pass a smaller tau (of Harmonic: a smaller c or a larger t0)",
        )


def known_rates(schedule: AbstractSchedule, p: int | float, t: Any) -> tuple[Array, ...]:
    """The rates at the first sample after the time `t`, or all knots of an `Interpolated`;
    of a schedule that follows the samples, none."""
    if isinstance(schedule, Constant):
        return (schedule.value,)
    if isinstance(schedule, Interpolated):
        return (schedule.taus,)
    if isinstance(schedule, Harmonic):
        return (schedule.c / (t + schedule.t0 + (schedule.k0 + 1) / p),)
    return ()


def cast(tree: Any, dtype: Any) -> Any:
    """`tree` with its floating-point leaves in `dtype`."""
    return jax.tree.map(lambda x: x.astype(dtype) if eqx.is_inexact_array(x) else x, tree)
