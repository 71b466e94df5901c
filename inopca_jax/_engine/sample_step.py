"""One step of an algorithm on one sample."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike

from .._check import Checked, is_known, reals, require_instance, require_whole
from .._model import SpikedModel
from .._numerics import cast
from .._rule import AbstractRule, initial_state
from .._schedule import AbstractSchedule, Oracle
from .._types import ScheduleState, Vector, real_leaves
from .deflation import Targets
from .sample import StreamState, one_sample

# The least dimension of a `SpikedModel`.
_SMALLEST_P = 3


def sample_step(
    rule: Checked[AbstractRule],
    x: Checked[ArrayLike],
    y: Checked[ArrayLike],
    step: Checked[int] = 0,
    state: Checked[ScheduleState | None] = None,
) -> tuple[Vector, ScheduleState]:
    """Returns the estimate after one step of the p-dimensional algorithm.

    `x' = (1 - decay/p) x + (gain/p) (y.x) y`, with the rule's rates at this sample; a rule
    that projects then brings it back to `|x'| = sqrt(p)`. It is a pure function, to be used
    under `jit`, `vmap`, `grad` or `scan`; `stream_pca` is faster for many samples.

    **Arguments:**

    - `rule`: the algorithm. A rule with the schedule `Oracle` is refused, because it reads
      the overlap with the spike, which a sample does not contain.
    - `x`: the estimate, of shape (p,); its norm `lam` is `|x|/sqrt(p)`.
    - `y`: the sample, of shape (p,), with noise of unit variance.
    - `step`: the number of samples before this one, for schedules that depend on time.
    - `state`: the schedule's state, from the step before; the initial one if it is `None`.

    **Returns:**

    The pair `(x_next, state)`. The state is `()` if the schedule has none.

    **Example:**

    ```pycon
    >>> import jax.numpy as jnp
    >>> import inopca_jax as ino
    >>> x, y = jnp.ones(4), jnp.array([1.0, -1.0, 1.0, 1.0])
    >>> x_next, state = ino.sample_step(ino.InoPCA(0.5), x, y)
    >>> x_next.tolist(), state
    ([1.125, 0.625, 1.125, 1.125], ())
    ```
    """
    rule = real_leaves(rule)
    require_instance("rule", rule, AbstractRule)
    require_instance("rule.tau", rule.tau, AbstractSchedule)
    if isinstance(rule.tau, Oracle):
        raise ValueError(
            "rule.tau = Oracle() is not allowed: it reads the overlap with the spike, "
            "which is not known here. Pass a number or another schedule as tau."
        )
    old: Array = reals("x", x)
    sample: Array = reals("y", y)
    if old.ndim != 1 or old.shape != sample.shape or old.size < _SMALLEST_P:
        raise ValueError(
            f"x of shape {old.shape} and y of shape {sample.shape} are not allowed: pass "
            f"two vectors of the same length p, at least {_SMALLEST_P}."
        )
    if is_known(step):
        remedy = "pass the number of samples before this one, from 0 on"
        step = require_whole("step", step, 0, remedy)
    rule, model = cast((rule, SpikedModel(p=old.size, omega=0.0)), old.dtype)
    if state is None:
        state = initial_state(rule, model.p)
    state = jax.tree.map(lambda leaf: jnp.asarray(leaf, old.dtype), state)
    # A schedule that reads the overlap all the same gets one that is not a number.
    unknown_spike = jnp.full_like(old, np.nan)
    before = StreamState.begin((old,), (unknown_spike,), (state,))
    targets = Targets.of(model, components=1)
    index = jnp.asarray(step, jnp.int32)
    after = one_sample(rule, model, targets, before, index, sample)
    return after.xs[0], after.schedules[0]
