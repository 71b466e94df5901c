"""What a schedule is: the source of the learning rate."""

import abc

from .._module import PublicModule
from .._observables import Hidden, Observables
from .._types import Real, Scalar, ScheduleState


class AbstractSchedule(PublicModule):
    """The source of the learning rate: `tau` at every sample, from time or from a state.

    At every sample the state first moves by `drift/p`; then `tau` is read. Because it moves
    slowly the schedule has a mean-field limit, in which `d state/dt = E[drift]`.

    A schedule without a state derives from `AbstractStatelessSchedule` instead.

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> import jax.numpy as jnp
    >>> class Counting(ino.AbstractSchedule):
    ...     def init(self, p):
    ...         return jnp.ones(())
    ...     def drift(self, observables, state):
    ...         return jnp.ones(())
    ...     def tau(self, observables, state, hidden):
    ...         return 1 / state
    ...
    >>> ino.mean_field(ino.Config(ino.Oja(Counting()), ts=[0.0, 10.0])).q.shape
    (2,)
    ```
    """

    @abc.abstractmethod
    def init(self, p: Scalar) -> ScheduleState:
        """Returns the state before the first sample.

        **Arguments:**

        - `p`: the dimension.
        """

    @abc.abstractmethod
    def drift(self, observables: Observables, state: ScheduleState) -> ScheduleState:
        """Returns `p` times the change of the state at this sample.

        **Arguments:**

        - `observables`: the scalars of this step.
        - `state`: the state before it.
        """

    @abc.abstractmethod
    def tau(self, observables: Observables, state: ScheduleState, hidden: Hidden) -> Real:
        """Returns the learning rate at this sample.

        **Arguments:**

        - `observables`: the scalars of this step.
        - `state`: the state after its change at this step; `()` for a stateless schedule.
        - `hidden`: the truth. A schedule that reads it is an oracle.
        """


class AbstractStatelessSchedule(AbstractSchedule):
    """A schedule whose rate follows from the observables alone. A subclass implements
    `tau`.

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> class Halving(ino.AbstractStatelessSchedule):
    ...     def tau(self, observables, state, hidden):
    ...         return 0.5 ** (1 + observables.t / 10)
    ...
    >>> ino.mean_field(ino.Config(ino.Oja(Halving()), ts=[0.0, 10.0])).q.shape
    (2,)
    ```
    """

    def init(self, p: Scalar) -> ScheduleState:
        return ()

    def drift(self, observables: Observables, state: ScheduleState) -> ScheduleState:
        return ()
