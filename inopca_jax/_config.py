"""The config: the one pytree that every function of the package takes."""

from typing import Any

import equinox as eqx
import numpy as np
from jaxtyping import Array

from ._check import as_times, is_known, require, require_instance, require_whole
from ._model import AbstractModel, SpikedModel
from ._module import PublicModule
from ._rule import (
    AbstractAlgorithm,
    AbstractRule,
    AbstractSubspaceRule,
    InoPCA,
    as_rule,
    require_rates,
)
from ._schedule import (
    AbstractSchedule,
    AbstractVectorSchedule,
    Constant,
    Harmonic,
    Interpolated,
)
from ._start import (
    AbstractDensityStart,
    AbstractGaussianStart,
    AbstractStart,
    FirstSamples,
    WarmStart,
)
from ._types import Times, part


def _components(components: Any) -> int:
    return require_whole(
        "components", components, 1, "pass a whole number of components, at least 1"
    )


def _paper_times() -> np.ndarray:
    return np.linspace(0.0, 50.0, 101)


class Config(PublicModule):
    """A simulation or theory problem: a rule on a model from a start, observed at given
    times.

    The defaults are the paper's. Every number, the dimension included, is an array leaf: a
    sweep is a `vmap` over configs, tuning is a `grad` with respect to one, and neither
    compiles anew when a number changes. Only shapes are static.

    **Arguments:**

    - `rule`: the algorithm and its learning rate.
    - `model`: the law of the data.
    - `start`: the law of the first estimate.
    - `ts`: the macroscopic times of observation, sorted, not negative, of shape (times,). A
      run at time `t` has seen `floor(p t)` samples.
    - `components`: how many components are estimated, by `alg:INO-PCA_multiple_pc`: a
      sample updates the first, what it leaves of the sample updates the second, and so on.
      An `AbstractSubspaceRule` updates all of them at once instead.

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> config = ino.Config(
    ...     rule=ino.InoPCA(tau=0.5),
    ...     model=ino.SpikedModel(p=1000, omega=1.0),
    ...     start=ino.WarmStart(q0=0.3),
    ...     ts=[0.0, 10.0, 50.0],
    ... )
    >>> ino.mean_field(config).q.shape
    (3,)
    ```
    """

    rule: AbstractAlgorithm = eqx.field(converter=as_rule, default_factory=InoPCA)
    model: AbstractModel = eqx.field(
        converter=part("model", AbstractModel), default_factory=SpikedModel
    )
    start: AbstractStart = eqx.field(
        converter=part("start", AbstractStart), default_factory=WarmStart
    )
    ts: Times = eqx.field(converter=as_times("ts"), default_factory=_paper_times)
    components: int = eqx.field(static=True, converter=_components, default=1)

    def __check_init__(self):
        require_instance("rule.tau", self.rule.tau, AbstractSchedule)
        _require_times(self.ts)
        require_stable(self.rule, self.model.p)
        if isinstance(self.start, AbstractDensityStart):
            self.start.require_law(self.model.phases()[0].spike)
        if is_known(self.model.p) and self.components >= self.model.p:
            raise ValueError(
                f"components = {self.components} at p = {int(self.model.p)} is not "
                "allowed: pass fewer components than the dimension."
            )
        _require_fitting(self.start, self.model.phases()[0].spikes, self.components)
        if (
            isinstance(self.start, FirstSamples)
            and self.model.phases()[0].observed is not None
        ):
            raise ValueError(
                "start = FirstSamples() with a model of observed = alpha is not allowed: a "
                "sample with missing entries is no Gaussian start. Use a ColdStart."
            )

    @property
    def is_single(self) -> bool:
        """Whether there is one spike and one component."""
        return self.components == self.model.phases()[0].spikes == 1


def _require_fitting(start: AbstractStart, spikes: int, components: int) -> None:
    """Refuses a start that does not fit the numbers of spikes and components."""
    if not isinstance(start, AbstractGaussianStart):
        if spikes == components == 1:
            return
        raise ValueError(
            f"start = {type(start).__name__} with {spikes} spikes and components = "
            f"{components} is not allowed: it describes one component by one spike. Use a "
            "WarmStart or a ColdStart."
        )
    overlaps = start.mixture()[0]
    allowed = {
        "q0": (overlaps.shape, [(), (min(spikes, components),), (spikes, components)]),
        "lam0": (start.lam0.shape, [(), (components,)]),
    }
    for name, (shape, shapes) in allowed.items():
        if shape not in shapes and shape != ():
            raise ValueError(
                f"{name} of shape {shape} with {spikes} spikes and components = "
                f"{components} is not allowed: pass one number, or an array of shape "
                f"{' or '.join(map(str, shapes[1:]))}."
            )


def _require_times(ts: Any) -> None:
    if ts.ndim != 1 or not ts.size:
        raise ValueError(
            f"ts of shape {ts.shape} is not allowed: pass at least one time, in one axis."
        )
    require("ts", ts, np.isfinite, "every time must be finite")
    require("ts", ts, lambda x: x >= 0, "times start at 0")
    require("ts", ts, lambda x: np.diff(x) >= 0, "times must be sorted")


def require_plain_schedule(rule: AbstractAlgorithm, user: str) -> None:
    """Refuses a schedule that keeps a vector of its own.

    **Arguments:**

    - `rule`: the rule.
    - `user`: what does not follow the vector.
    """
    if isinstance(rule.tau, AbstractVectorSchedule):
        raise ValueError(
            f"rule.tau = {type(rule.tau).__name__}() is not allowed with {user}: it keeps "
            "a vector of its own, which the theory does not follow. Use simulate or "
            "simulate_trial with Chain(), which is exact, or with Stream()."
        )


def require_single(config: Config, user: str, *, takes_penalty: bool = False) -> None:
    """Refuses several spikes or components, rules that act on all components at once or
    on the entries one by one, and schedules with vectors.

    **Arguments:**

    - `config`: the config.
    - `user`: what describes one spike, and one component with a gain and a decay, alone.
    - `takes_penalty`: whether it also describes a rule that acts on the entries.
    """
    require_plain_schedule(config.rule, user)
    if isinstance(config.rule, AbstractSubspaceRule):
        raise ValueError(
            f"rule = {type(config.rule).__name__} is not allowed with {user}, which is for "
            "rules with a gain and a decay of one component. Pass an AbstractRule, such as "
            "InoPCA or Oja, or use simulate with Chain() or Stream(), mean_field, "
            "steady_distance or FinalDistance."
        )
    if not takes_penalty:
        require_rates(config.rule, user)
    if not config.is_single:
        spikes = config.model.phases()[0].spikes
        raise ValueError(
            f"omega with {spikes} spikes and components = {config.components} is not "
            f"allowed with {user}, which is for one spike and one component. Pass one "
            "number as omega and components = 1, or use simulate with Chain() or Stream(), "
            "mean_field or steady_state."
        )


def rule_of_one(config: Config) -> AbstractRule:
    """Returns the rule of a config that `require_single` has let pass."""
    assert isinstance(config.rule, AbstractRule)
    return config.rule


def require_stable(rule: AbstractAlgorithm, p: Any) -> None:
    """Refuses a rate of 2p or more: the old estimate would get the factor 1 - tau/p <
    -1. Of a rule that forgets this factor has to be positive, and the rate below p."""
    if not is_known(p):
        return
    for tau in known_rates(rule.tau, float(p), 0.0):
        if rule.forgets:
            require(
                "tau",
                tau,
                lambda x: x < float(p),
                f"at tau >= p = {float(p):.16g} the forgetting factor 1 - tau/p is not "
                "positive; pass a smaller tau (of Harmonic: a smaller c or a larger t0)",
            )
        require(
            "tau",
            tau,
            lambda x: x < 2 * float(p),
            f"at tau >= 2p = {2 * float(p):.16g} one sample outweighs the estimate and "
            "every step overshoots; pass a smaller tau (of Harmonic: a smaller c or a "
            "larger t0)",
        )


def known_rates(schedule: AbstractSchedule, p: float, t: float) -> tuple[Array, ...]:
    """Returns the rates that can be known before a run.

    These are the rate at the first sample after the time `t`, or those at all knots of an
    `Interpolated`; there are none for a schedule that depends on the samples.
    """
    if isinstance(schedule, Constant):
        return (schedule.value,)
    if isinstance(schedule, Interpolated):
        return (schedule.taus,)
    if isinstance(schedule, Harmonic):
        return (schedule.c / (t + schedule.t0 + (schedule.k0 + 1) / p),)
    return ()
