"""Rules that act on the entries of the estimate one by one."""

from typing import Any, TypeVar

import equinox as eqx

from .._check import refuse
from .._module import show
from .._observables import Observables
from .._schedule import AbstractSchedule
from .._types import Real, part
from .base import AbstractAlgorithm, AbstractRule, Rates
from .penalty import AbstractPenalty, Ridge, require_even

Algorithm = TypeVar("Algorithm", bound=AbstractAlgorithm)


class Penalised(AbstractRule):
    """A rule whose every step is followed by `x <- x - phi(x)/p`, entry by entry.

    With `SoftThreshold` this is sparse online PCA (Wang and Lu, 2016). For a rule that
    projects, the order is the step, the penalty, and then the projection: the norm is
    scaled back to `|x| = sqrt(p)` after the penalty.

    What such a step does depends on the single entries of the estimate, and not on its
    overlap and norm alone: neither a chain nor an ODE describes it. `Stream` simulates it;
    `density` and `overlap_path` are its theory; everything else refuses it.

    A `Ridge` is the exception. It is a decay, `x' = (1 - beta/p) (...)`, so that at every
    p this is a rule with the gain `(1 - beta/p) gain` and the decay
    `decay + beta - beta decay/p`, which everything takes.

    **Arguments:**

    - `rule`: any other rule, with its learning rate.
    - `penalty`: a `SoftThreshold`, a `Ridge` or an `AbstractPenalty` of your own.

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> rule = ino.Penalised(ino.Oja(tau=0.5), ino.SoftThreshold(beta=0.3))
    >>> model = ino.SpikedModel(p=10_000, omega=1.0, spike=ino.Sparse(rho=0.05))
    >>> config = ino.Config(rule, model, ino.WarmStart(q0=0.5), ts=[0.0, 20.0])
    >>> [round(float(q), 2) for q in ino.density(config).q]
    [0.5, 0.86]
    ```
    """

    rule: AbstractRule = eqx.field(converter=part("rule", AbstractRule))
    penalty: AbstractPenalty = eqx.field(converter=part("penalty", AbstractPenalty))

    def __check_init__(self):
        if isinstance(self.rule, Penalised):
            refuse("rule", self.rule, "pass a rule without a penalty, and one penalty")
        require_even(self.penalty)

    @property
    def tau(self) -> AbstractSchedule:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The learning rate of the rule."""
        return self.rule.tau

    @property
    def projects(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether the rule projects."""
        return self.rule.projects

    @property
    def forgets(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether the rule forgets."""
        return self.rule.forgets

    def rates(self, observables: Observables, tau: Real) -> Rates:
        require_rates(self, "what reads the gain and the decay of a rule")
        assert isinstance(self.penalty, Ridge)
        rates, beta = self.rule.rates(observables, tau), self.penalty.beta
        keep = 1 - beta / observables.p
        return Rates(gain=keep * rates.gain, decay=keep * rates.decay + beta)


def split_penalty(rule: Algorithm) -> tuple[Algorithm, AbstractPenalty | None]:
    """Returns a rule and the penalty that acts on the entries one by one after its step.

    There is none if the step follows from the rule's gain and decay.
    """
    if isinstance(rule, Penalised) and not isinstance(rule.penalty, Ridge):
        return rule.rule, rule.penalty  # pyright: ignore[reportReturnType]
    return rule, None


def require_rates(rule: Any, user: str) -> None:
    """Refuses a rule whose step does not follow from a gain and a decay.

    **Arguments:**

    - `rule`: the rule.
    - `user`: what needs the gain and the decay.
    """
    if split_penalty(rule)[1] is not None:
        raise ValueError(
            f"rule = {show(rule, width=None)} is not allowed with {user}: its penalty acts "
            "on the entries of the estimate one by one, so that the overlap and the norm "
            "do not determine their own change. Simulate it with Stream(), and compute its "
            "limit by density or overlap_path."
        )
