"""What a schedule with a vector of its own is."""

import abc

from .._module import PublicModule
from .._observables import Hidden, Observables
from .._types import Real, ScheduleState
from .base import AbstractSchedule


class VectorStep(PublicModule):
    """The three numbers of one step of a schedule's vector.

    `g' = (1 - decay/p) g + (along/p) x/|x| + (pull/p) (y.x/|x|) y`.

    **Arguments:**

    - `decay`: how much the vector shrinks.
    - `along`: how much of the estimate's direction is added.
    - `pull`: how much of the sample is added, times its component along the estimate.

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> import jax.numpy as jnp
    >>> decay, along, pull = jnp.array([4.0, 0.0, 4.0])
    >>> step = ino.VectorStep(decay=decay, along=along, pull=pull)
    >>> float(step.decay)
    4.0
    ```
    """

    decay: Real
    along: Real
    pull: Real


class AbstractVectorSchedule(AbstractSchedule):
    """A schedule that keeps a vector of its own, as long as a sample, and sets the gain.

    The vector `g` is zero at the start. Of `g` the schedule may read the two products in
    `observables.vector`. At every sample its state first moves by `drift/p`; then `gain`
    and `vector_step` are read, and `x` and `g` move together. As `g` moves by combinations
    of itself, `x` and the sample, it is one more vector of the Gram state, and the chain
    stays exact.

    The gain has no bound that is known beforehand; the decay of the rule is cut at p/2.

    Every component has a vector of its own. With such a schedule `Chain`, `Stream` and
    `stream_pca` run; the theory is of plain schedules and refuses it.

    **Example:**

    ```pycon
    >>> import jax.numpy as jnp
    >>> import jax.random as jr
    >>> import inopca_jax as ino
    >>> class Momentum(ino.AbstractVectorSchedule):
    ...     def init(self, p):
    ...         return jnp.ones(())
    ...     def drift(self, observables, state):
    ...         return observables.vector.with_sample - state
    ...     def gain(self, observables, state):
    ...         return 1 / (1 + jnp.abs(state))
    ...     def vector_step(self, observables, state):
    ...         one = jnp.ones_like(state)
    ...         return ino.VectorStep(decay=one, along=0 * one, pull=one)
    ...
    >>> config = ino.Config(
    ...     ino.Oja(Momentum()), ino.SpikedModel(p=100), ts=[0.0, 1.0]
    ... )
    >>> ino.simulate_trial(config, key=jr.key(0)).q.shape
    (2,)
    ```
    """

    @abc.abstractmethod
    def gain(self, observables: Observables, state: ScheduleState) -> Real:
        """Returns the gain `nu` at this sample.

        **Arguments:**

        - `observables`: the scalars of this step, among them `observables.vector`.
        - `state`: the state after its change at this step.
        """

    @abc.abstractmethod
    def vector_step(self, observables: Observables, state: ScheduleState) -> VectorStep:
        """Returns the step of the vector at this sample.

        **Arguments:**

        - `observables`, `state`: as of `gain`.
        """

    def tau(self, observables: Observables, state: ScheduleState, hidden: Hidden) -> Real:
        # The gain of a rule is proportional to tau. This is all that is read of `hidden`.
        return self.gain(observables, state) / hidden.unit_gain
