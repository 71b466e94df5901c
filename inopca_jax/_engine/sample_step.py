"""One step of an algorithm on one sample."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from .._check import Checked, is_known, reals, require_instance, require_whole
from .._model import SpikedModel
from .._numerics import cast
from .._rule import AbstractAlgorithm, AbstractSubspaceRule, as_rule, initial_states
from .._schedule import AbstractSchedule, Oracle
from .._types import ScheduleState
from .deflation import Targets
from .sample import StreamState, one_sample
from .vector_step import vectors_of

# The least dimension of a `SpikedModel`.
_SMALLEST_P = 3


def sample_step(
    rule: Checked[AbstractAlgorithm],
    x: Checked[ArrayLike],
    y: Checked[ArrayLike],
    step: Checked[int] = 0,
    state: Checked[ScheduleState | None] = None,
) -> tuple[Float[Array, "*components p"], ScheduleState]:
    """Returns the estimate after one step of the p-dimensional algorithm, or those of
    several components.

    `x' = (1 - decay/p) x + (gain/p) (y.x) y`, with the rule's rates at this sample; a rule
    that projects then brings it back to `|x'| = sqrt(p)`. It is a pure function, to be used
    under `jit`, `vmap`, `grad` or `scan`; `stream_pca` is faster for many samples.

    **Arguments:**

    - `rule`: the algorithm. A rule with the schedule `Oracle` is refused, because it reads
      the overlap with the spike, which a sample does not contain.
    - `x`: the estimate, of shape (p,); its norm `lam` is `|x|/sqrt(p)`. Or the estimates of
      several components, of shape (components, p).
    - `y`: the sample, of shape (p,), with noise of unit variance.
    - `step`: the number of samples before this one, for schedules that depend on time.
    - `state`: the schedule's state, from the step before; the initial one if it is `None`.

    **Returns:**

    The pair `(x_next, state)`. The state is `()` if the schedule has none. Of several
    components it is a tuple with one for each, but of an `AbstractSubspaceRule` always the
    pair of the states of the schedule and of the rule.

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
    rule = as_rule(rule)
    require_instance("rule.tau", rule.tau, AbstractSchedule)
    if isinstance(rule.tau, Oracle):
        raise ValueError(
            "rule.tau = Oracle() is not allowed: it reads the overlap with the spike, "
            "which is not known here. Pass a number or another schedule as tau."
        )
    if vectors_of(rule, 1):
        raise ValueError(
            f"rule.tau = {type(rule.tau).__name__}() is not allowed: it keeps a vector of "
            "its own, which this function does not return. Use stream_pca or "
            "update_components."
        )
    old: Array = reals("x", x)
    sample: Array = reals("y", y)
    xs = tuple(old) if old.ndim == 2 else (old,)
    if not xs or any(x.ndim != 1 or x.shape != sample.shape for x in xs):
        raise ValueError(
            f"x of shape {old.shape} and y of shape {sample.shape} are not allowed: pass "
            f"two vectors of the same length p, at least {_SMALLEST_P}, or several such "
            "vectors as the rows of x."
        )
    if not len(xs) < sample.size >= _SMALLEST_P:
        raise ValueError(
            f"x of shape {old.shape} is not allowed: pass vectors of a length p, at least "
            f"{_SMALLEST_P}, and fewer components than p."
        )
    if is_known(step):
        remedy = "pass the number of samples before this one, from 0 on"
        step = require_whole("step", step, 0, remedy)
    rule, model = cast((rule, SpikedModel(p=sample.size, omega=0.0)), old.dtype)
    is_one = isinstance(rule, AbstractSubspaceRule) or old.ndim == 1
    if state is None:
        states = initial_states(rule, model.p, len(xs))
    else:
        states = (state,) if is_one else tuple(state)
    states = jax.tree.map(lambda leaf: jnp.asarray(leaf, old.dtype), states)
    # A schedule that reads the overlap all the same gets one that is not a number.
    unknown_spike = jnp.full_like(sample, np.nan)
    before = StreamState.begin(xs, (unknown_spike,), states)
    targets = Targets.of(model, len(xs))
    index = jnp.asarray(step, jnp.int32)
    after = one_sample(rule, model, targets, before, index, sample)
    new = after.xs[0] if old.ndim == 1 else jnp.stack(after.xs)
    return new, after.schedules[0] if is_one else after.schedules
