"""The components of a stream as a pure state and update, for programs of one's own."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Int

from .._check import (
    Checked,
    as_dtype,
    is_known,
    reals,
    require_flag,
    require_instance,
    require_whole,
)
from .._numerics import cast
from .._rule import as_rule, require_rates
from .._schedule import AbstractSchedule, Oracle
from .._types import real_leaves
from .block import Estimates
from .method import Method, State, block_size, initial_state, next_state
from .sketch import Sketch, SketchState


def init_components(
    rule: Checked[Method],
    components: Checked[int],
    p: Checked[int],
    dtype: Any = None,
) -> Any:
    """Returns the state of `components` components before the first sample.

    **Arguments:**

    - `rule`: any rule except one with an `Oracle` schedule, or a `Sketch`.
    - `components`: how many components, at most `p`.
    - `p`: how many features a sample has.
    - `dtype`: the precision; by default JAX's.

    **Returns:**

    A state for `update_components`. It has `vectors` of shape (components, p), whose
    lengths are the norms that the rule sees, `components` (the same made orthonormal),
    `eigenvalues(rule)`, `mean` and `count`. Of a `Sketch`, `vectors` has a row for each of
    the directions that it keeps, and there is `variance`, of shape (p,).

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> state = ino.init_components(ino.InoPCA(0.1), components=2, p=20)
    >>> state.vectors.shape, int(state.count)
    ((2, 20), 0)
    ```
    """
    rule = required_method(rule)
    p = require_whole("p", p, 1, "pass the number of features of a sample")
    remedy = "pass a whole number of components, at least 1"
    components = require_whole("components", components, 1, remedy)
    if components > p:
        raise ValueError(
            f"components = {components} is not allowed: samples of p = {p} features have "
            "no more than p."
        )
    dtype = jnp.result_type(float) if as_dtype(dtype) is None else np.dtype(dtype)
    return initial_state(cast(rule, dtype), components, p, dtype)


def update_components(
    rule: Checked[Method],
    state: Checked[State],
    samples: Checked[Float[Array | np.ndarray, "samples p"]],
    count: Checked[ArrayLike | None] = None,
    *,
    center: Checked[bool] = False,
) -> Any:
    """Returns the state of the components after some more samples.

    A pure function, to be jitted, and vmapped over rules and streams; `stream_pca` is the
    driver for one stream of any length, and checks the samples. Samples are taken in
    blocks of 64, by a `Sketch` of at most 128 features in blocks of 128: calls with a
    multiple of as many lose no time to padding.

    **Arguments:**

    - `rule`: the rule, or the `Sketch`, that the state was made for.
    - `state`: from `init_components` or from the call before.
    - `samples`: of shape (samples, p).
    - `count`: how many of the samples to take, the first ones; by default all. It may be
      traced: pad the last samples of a stream to the shape of the others, and pass how
      many there are.
    - `center`: whether the running mean is subtracted; the same in all calls.

    **Returns:**

    The state after these samples.

    **Example:**

    ```pycon
    >>> import jax
    >>> import jax.random as jr
    >>> import inopca_jax as ino
    >>> rule, streams = ino.InoPCA(0.1), jr.normal(jr.key(0), (3, 64, 20))
    >>> state = ino.init_components(rule, components=2, p=20)
    >>> update = lambda samples: ino.update_components(rule, state, samples)
    >>> jax.vmap(update)(streams).vectors.shape
    (3, 2, 20)
    ```
    """
    rule = required_method(rule)
    require_instance("state", state, SketchState if isinstance(rule, Sketch) else Estimates)
    center = require_flag("center", center)
    p = state.vectors.shape[1]
    samples = reals("samples", samples).astype(state.vectors.dtype)
    if samples.ndim != 2 or samples.shape[1] != p or not len(samples):
        raise ValueError(
            f"samples of shape {samples.shape} are not allowed: the state is of p = {p} "
            f"features. Pass shape (samples, {p}), with at least one sample."
        )
    count = len(samples) if count is None else count
    if is_known(count):
        remedy = f"pass a whole number of the {len(samples)} samples"
        count = require_whole("count", count, 0, remedy, len(samples))
    wanted: Int[Array, ""] = jnp.asarray(count, jnp.int32)
    # The rows that are added are not taken; copies of the last one are as large as samples
    # are, so that their squares are finite too.
    missing = -len(samples) % block_size(rule, p)
    padded = jnp.pad(samples, ((0, missing), (0, 0)), mode="edge")
    return next_state(cast(rule, samples.dtype), state, padded, wanted, center)


def required_method(rule: Any) -> Method:
    """Returns the rule with array leaves; refuses what is no rule for data."""
    if isinstance(rule, Sketch):
        return real_leaves(rule)
    rule = as_rule(rule)
    require_instance("rule.tau", rule.tau, AbstractSchedule)
    require_rates(rule, "a stream of data, taken in blocks (loop over sample_step instead)")
    if isinstance(rule.tau, Oracle):
        raise ValueError(
            "rule.tau = Oracle() is not allowed: it reads the overlap with the true spike, "
            "which is not known for data. Pass a number or another schedule."
        )
    return rule
