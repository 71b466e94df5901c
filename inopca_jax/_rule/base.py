"""What a rule is: a few scalars in, a gain and a decay out.

Every single-component algorithm of the package is the rank-one update

    x' = (1 - h/p) x + (nu/p) (y.x) y

with a gain `nu` and a decay `h`, for some rules followed by a projection back to
`|x| = sqrt(p)`. A rule turns a learning rate `tau` into `(nu, h)`; its schedule supplies
`tau`. All that the package computes follows from these two numbers. Rules that act on all
components at once are in `subspace.py`.
"""

import abc
import dataclasses
import inspect
from typing import TYPE_CHECKING, Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp

from .._check import refuse
from .._module import PublicModule
from .._observables import Hidden, Observables
from .._schedule import AbstractSchedule, Constant
from .._types import Real, Scalar, ScheduleState, real_leaves

if TYPE_CHECKING:
    from typing import ClassVar as AbstractClassVar
else:
    from equinox import AbstractClassVar


class Rates(PublicModule):
    """The two numbers of one step, `x' = (1 - decay/p) x + (gain/p) (y.x) y`.

    **Arguments:**

    - `gain`: `nu`, how strongly the sample attracts the estimate.
    - `decay`: `h`, how much the estimate shrinks.

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> import jax.numpy as jnp
    >>> rates = ino.Rates(gain=jnp.array(0.5), decay=jnp.array(0.25))
    >>> float(rates.gain), float(rates.decay)
    (0.5, 0.25)
    ```
    """

    gain: Real
    decay: Real


def as_schedule(tau: Any) -> AbstractSchedule:
    """Returns `tau` if it is a schedule, else `Constant(tau)`."""
    return tau if isinstance(tau, AbstractSchedule) else Constant(tau)


class AbstractAlgorithm(PublicModule):
    """An algorithm of online PCA: what an `AbstractRule` and an `AbstractSubspaceRule` have
    in common.

    **Arguments:**

    - `tau`: the learning rate, a number or a schedule. A number becomes a `Constant`.

    `projects` says whether the estimates are scaled back, or made orthonormal again, after
    every step, and before the first. `forgets`, by default false, says whether `1 - tau/p`
    is the weight of what was before a sample, which has to be positive.

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> rules = ino.InoPCA(0.5), ino.GHA(0.5)
    >>> all(isinstance(rule, ino.AbstractAlgorithm) for rule in rules)
    True
    ```
    """

    tau: eqx.AbstractVar[AbstractSchedule]
    projects: AbstractClassVar[bool]
    forgets: ClassVar[bool] = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        # Also a user's rule, which declares `tau` without a converter, converts numbers.
        super().__init_subclass__(**kwargs)
        if "tau" in inspect.get_annotations(cls):
            declared = cls.__dict__.get("tau", eqx.field())
            if not isinstance(declared, dataclasses.Field):
                declared = eqx.field(default=declared)
            if "converter" in declared.metadata:
                return
            options = dict(default=declared.default)
            if declared.default_factory is not dataclasses.MISSING:
                options = dict(default_factory=declared.default_factory)
            cls.tau = eqx.field(converter=as_schedule, **options)  # pyright: ignore


class AbstractRule(AbstractAlgorithm):
    """An algorithm of online PCA, given by its gain and its decay.

    A subclass has a field `tau` and the class attribute `projects`, and implements `rates`.
    A number that is passed as `tau` becomes a `Constant` schedule.

    **Arguments:**

    - `tau`: the learning rate, a number or a schedule.

    `projects` says whether the estimate is scaled back to `|x| = sqrt(p)` after every step,
    and before the first.

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> from typing import ClassVar
    >>> class Saturating(ino.AbstractRule):
    ...     tau: ino.AbstractSchedule = 0.5
    ...     projects: ClassVar[bool] = True
    ...     def rates(self, observables, tau):
    ...         return ino.Rates(gain=tau / (1 + 0.1 * observables.s2), decay=0 * tau)
    ...
    >>> config = ino.Config(Saturating(tau=0.3), ts=[0.0, 10.0])
    >>> ino.mean_field(config).q.shape
    (2,)
    ```
    """

    @abc.abstractmethod
    def rates(self, observables: Observables, tau: Real) -> Rates:
        """Returns the gain and the decay at one sample.

        **Arguments:**

        - `observables`: the scalars of this step.
        - `tau`: the learning rate.
        """


def as_rule(rule: Any) -> AbstractAlgorithm:
    """Returns the rule with array leaves; refuses what is no rule."""
    if not isinstance(rule, AbstractAlgorithm):
        remedy = "pass an instance of AbstractRule or AbstractSubspaceRule"
        refuse("rule", rule, f"{remedy}, such as InoPCA(0.5)")
    return real_leaves(rule)


def initial_state(rule: AbstractAlgorithm, p: Scalar) -> ScheduleState:
    """Returns the state of the rule's schedule before the first sample, with array leaves
    of the precision of `p`."""
    dtype = p.dtype if isinstance(p, jax.Array) else jnp.result_type(float)
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype), rule.tau.init(p))


def rates_and_next_state(
    rule: AbstractRule, observables: Observables, q: Real, omega: Real, state: ScheduleState
) -> tuple[Rates, ScheduleState]:
    """Returns the rates at one sample and the schedule's state after it.

    The order is: the schedule's state moves, the schedule names `tau`, the rule its rates.
    """
    drift = rule.tau.drift(observables, state)
    state = jax.tree.map(lambda s, d: s + d / observables.p, state, drift)
    return rates_at(rule, observables, q, omega, state), state


def rates_at(
    rule: AbstractRule, observables: Observables, q: Real, omega: Real, state: ScheduleState
) -> Rates:
    """Returns the rates at a given state of the schedule, as the limit of large p needs."""
    unit_gain = rule.rates(observables, jnp.ones_like(observables.lam)).gain
    hidden = Hidden(q=q, omega=omega, unit_gain=unit_gain)
    return rule.rates(observables, rule.tau.tau(observables, state, hidden))
