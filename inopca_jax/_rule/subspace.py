"""Rules that act on all components at once.

Such an algorithm updates all of its estimates, the columns of X, by a sample y in one step,

    X' = X (I - H/p) + y (G X^T y)^T/p

with a matrix of gains `G` and a matrix of decays `H`; for some rules the columns are then
made orthonormal in their order, the factor Q of the decomposition of X' into Q and R. As
`G` and `H` follow from inner products, so does the whole step, as that of an
`AbstractRule`.
"""

import abc
from typing import TypeAlias

import jax
import jax.numpy as jnp

from .._check import refuse
from .._module import PublicModule
from .._observables import Hidden, Observables
from .._schedule import AbstractVectorSchedule, Oracle
from .._types import Matrix, Real, RuleState, Scalar, ScheduleState
from .base import AbstractAlgorithm, initial_state

SubspaceState: TypeAlias = tuple[ScheduleState, RuleState]
"""The states of the schedule and of the rule."""


class SubspaceObservables(PublicModule):
    """What an `AbstractSubspaceRule` may read at one sample.

    In terms of the estimates `V = X/sqrt(p)` and of `w = V^T y`, their products with the
    sample:

    **Arguments:**

    - `outer`: `w w^T`, of shape (components, components).
    - `gram`: `V^T V`, of the same shape; its diagonal has the squares of the norms.
    - `r`: the sample's squared length, `|y|^2/p`.
    - `t`: the macroscopic time at the end of the step, `(k + 1)/p` at step `k`.
    - `p`: the dimension.

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> import jax.numpy as jnp
    >>> w, one = jnp.array([2.0, 1.0]), jnp.ones(())
    >>> seen = ino.SubspaceObservables(jnp.outer(w, w), jnp.eye(2), one, one, 100 * one)
    >>> ino.GHA(0.5).rates(seen, 0.5 * one, ()).decay.tolist()
    [[2.0, 1.0], [0.0, 0.5]]
    ```
    """

    outer: Matrix
    gram: Matrix
    r: Real
    t: Real
    p: Real

    def as_scalars(self) -> Observables:
        """Returns what the schedule of all components reads: the root mean square of their
        norms as `lam`, and as `s2` the sum of the squared components of the sample along
        them."""
        own = jnp.diagonal(self.gram)
        lam = jnp.sqrt(jnp.mean(own))
        s2 = jnp.sum(jnp.diagonal(self.outer) / own)
        return Observables(lam=lam, s2=s2, r=self.r, t=self.t, p=self.p)


class SubspaceRates(PublicModule):
    """The two matrices of one step, `X' = X (I - decay/p) + y (gain X^T y)^T/p`.

    **Arguments:**

    - `gain`: `G`, how strongly the sample attracts the estimates, of shape (components,
      components).
    - `decay`: `H`, by how much of themselves and of each other they shrink.

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> import jax.numpy as jnp
    >>> rates = ino.SubspaceRates(gain=0.5 * jnp.eye(2), decay=jnp.zeros((2, 2)))
    >>> rates.gain.shape
    (2, 2)
    ```
    """

    gain: Matrix
    decay: Matrix


class AbstractSubspaceRule(AbstractAlgorithm):
    """An algorithm of online PCA that acts on all components at once.

    A subclass has a field `tau` and the class attribute `projects`, and implements `init`,
    `drift` and `rates`. A number that is passed as `tau` becomes a `Constant` schedule; the
    schedule `Oracle` is refused, because it gives the rate of a single component.

    At every sample the state of the schedule moves first, then the rule's own state moves
    by `drift/p`, and `rates` reads it. The rule runs in `Chain`, `Stream` and `stream_pca`.
    `mean_field` also needs that the drift and the decay are linear in `outer`, up to a
    constant, and that the gain does not depend on it; it refuses other rules.

    **Arguments:**

    - `tau`: the learning rate, a number or a schedule.

    `projects` says whether the estimates are made orthonormal, with lengths `sqrt(p)`,
    after every step, and before the first.

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> import jax.numpy as jnp
    >>> from typing import ClassVar
    >>> class Damped(ino.AbstractSubspaceRule):
    ...     tau: ino.AbstractSchedule = 0.5
    ...     projects: ClassVar[bool] = True
    ...     def init(self, components):
    ...         return ()
    ...     def drift(self, observables, tau, state):
    ...         return ()
    ...     def rates(self, observables, tau, state):
    ...         share = 1 / (1 + jnp.arange(len(observables.gram), dtype=tau.dtype))
    ...         return ino.SubspaceRates(tau * jnp.diag(share), 0 * observables.gram)
    ...
    >>> model = ino.SpikedModel(p=500, omega=[3.0, 2.0])
    >>> config = ino.Config(Damped(0.3), model, ts=[0.0, 10.0], components=2)
    >>> ino.mean_field(config).overlaps.shape
    (2, 2, 2)
    ```
    """

    def __check_init__(self):
        if isinstance(self.tau, (Oracle, AbstractVectorSchedule)):
            refuse(
                f"{type(self).__name__}.tau",
                self.tau,
                "it gives the rate of a single component; pass a number or another "
                "schedule, or use a rule with a gain for each component, such as InoPCA",
            )

    @abc.abstractmethod
    def init(self, components: int) -> RuleState:
        """Returns the rule's state before the first sample, `()` if it has none.

        **Arguments:**

        - `components`: how many components there are.
        """

    @abc.abstractmethod
    def drift(
        self, observables: SubspaceObservables, tau: Real, state: RuleState
    ) -> RuleState:
        """Returns `p` times the change of the state at one sample.

        **Arguments:**

        - `observables`: what is known of this step.
        - `tau`: the learning rate.
        - `state`: the state before it.
        """

    @abc.abstractmethod
    def rates(
        self, observables: SubspaceObservables, tau: Real, state: RuleState
    ) -> SubspaceRates:
        """Returns the gains and the decays at one sample.

        **Arguments:**

        - `observables`: what is known of this step.
        - `tau`: the learning rate.
        - `state`: the state after its change at this step.
        """


def initial_states(
    rule: AbstractAlgorithm, p: Scalar, components: int
) -> tuple[ScheduleState, ...]:
    """Returns the states before the first sample: that of a schedule for each component,
    or of a rule that acts on all of them a single one, a `SubspaceState`."""
    schedule = initial_state(rule, p)
    if not isinstance(rule, AbstractSubspaceRule):
        return (schedule,) * components
    dtype = p.dtype if isinstance(p, jax.Array) else jnp.result_type(float)
    own = jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype), rule.init(components))
    return ((schedule, own),)


def schedule_drift(
    rule: AbstractSubspaceRule, seen: SubspaceObservables, state: SubspaceState
) -> ScheduleState:
    """Returns `p` times the change of the schedule's state."""
    return rule.tau.drift(seen.as_scalars(), state[0])


def learning_rate(
    rule: AbstractSubspaceRule, seen: SubspaceObservables, state: SubspaceState
) -> Real:
    """Returns the learning rate, by a schedule's state after its change."""
    nan = jnp.full_like(seen.r, jnp.nan)
    hidden = Hidden(q=nan, omega=nan, unit_gain=nan)
    return jnp.asarray(rule.tau.tau(seen.as_scalars(), state[0], hidden), seen.r.dtype)


def subspace_rates_and_next_state(
    rule: AbstractSubspaceRule, seen: SubspaceObservables, state: SubspaceState
) -> tuple[SubspaceRates, SubspaceState]:
    """Returns the rates at one sample, and the states after it."""

    def moved(state: RuleState, drift: RuleState) -> RuleState:
        return jax.tree.map(lambda s, d: s + d / seen.p, state, drift)

    schedule = moved(state[0], schedule_drift(rule, seen, state))
    tau = learning_rate(rule, seen, (schedule, state[1]))
    own = moved(state[1], rule.drift(seen, tau, state[1]))
    return rule.rates(seen, tau, own), (schedule, own)
