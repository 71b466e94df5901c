"""One step of a rule that acts on all components at once, and of any rule."""

from collections.abc import Sequence

import jax.numpy as jnp
from jaxtyping import Array, Float

from .._rule import (
    AbstractAlgorithm,
    AbstractRule,
    AbstractSubspaceRule,
    SubspaceObservables,
    SubspaceState,
    subspace_rates_and_next_state,
)
from .._rule.small_matrices import apply, entries, inverse_factor, product, stack
from .._schedule import AbstractVectorSchedule
from .._types import Matrix, Real, Scalar, ScheduleState
from .deflation import LinearUpdate, Targets, deflated_update
from .update import Step
from .vector_step import deflated_update_with_vectors


def subspace_step(
    rule: AbstractSubspaceRule,
    p: Scalar,
    index: Step,
    gram: Matrix,
    products: Float[Array, " components"],
    yy: Real,
    state: SubspaceState,
) -> tuple[Matrix, Float[Array, " components"], SubspaceState]:
    """Returns `(mix, coef, state)` of the update `V' = V (I + mix) + y coef^T` at one
    sample.

    **Arguments:**

    - `rule`: the rule.
    - `p`: the dimension.
    - `index`: the number of samples before this one.
    - `gram`, `products`: `V^T V` and `V^T y`, with `V = X/sqrt(p)`.
    - `yy`: `|y|^2`.
    - `state`: the states of the schedule and of the rule.
    """
    p = jnp.asarray(p, gram.dtype)
    seen = SubspaceObservables(
        outer=products[:, None] * products[None, :],
        gram=gram,
        r=yy / p,
        t=(index + 1).astype(gram.dtype) / p,
        p=p,
    )
    rates, state = subspace_rates_and_next_state(rule, seen, state)
    mix, coef = -rates.decay / p, apply(rates.gain, products) / p
    if not rule.projects:
        return mix, coef, state
    # The Gram matrix after the step, as its difference from that before.
    half = product(gram, mix)
    pull = products + apply(mix.T, products)
    change = half + half.T + product(mix.T, half)
    change = change + pull[:, None] * coef[None, :] + coef[:, None] * pull[None, :]
    change = change + yy * coef[:, None] * coef[None, :]
    factor = inverse_factor(gram + change)
    difference = factor - jnp.eye(len(gram), dtype=gram.dtype)
    return product(mix, factor) + difference, apply(factor.T, coef), state


def linear_update(
    rule: AbstractAlgorithm,
    p: Scalar,
    targets: Targets,
    index: Step,
    gram: Sequence[Sequence[Real]],
    products: Sequence[Real],
    yy: Real,
    along: Sequence[Sequence[Real]],
    states: tuple[ScheduleState, ...],
) -> tuple[LinearUpdate, tuple[ScheduleState, ...]]:
    """Returns the update of all components at one sample by any rule, and the next states.

    **Arguments:**

    - `targets`: the spikes of the components, which only an oracle reads.
    - `along`: the products of each spike with all components.
    - `states`: as of `initial_states`.

    The others are those of `deflated_update`, which this is for an `AbstractRule`, or those
    of `deflated_update_with_vectors` if its schedule keeps vectors.
    """
    if isinstance(rule, AbstractSubspaceRule):
        (state,) = states
        matrix, vector = stack(gram), jnp.stack(list(products))
        mix, coef, state = subspace_step(rule, p, index, matrix, vector, yy, state)
        return _as_update(mix, coef), (state,)
    assert isinstance(rule, AbstractRule)
    has_vectors = isinstance(rule.tau, AbstractVectorSchedule)
    deflated = deflated_update_with_vectors if has_vectors else deflated_update
    return deflated(
        rule,
        p,
        targets.omegas,
        index,
        gram,
        products,
        yy,
        targets.products(along),
        states,
    )


def orthonormalising(gram: Sequence[Sequence[Real]]) -> LinearUpdate:
    """Returns the update, by no sample, that makes the components orthonormal in their
    order.

    **Arguments:**

    - `gram`: their inner products.
    """
    factor = inverse_factor(stack(gram))
    size = len(factor)
    mix = factor - jnp.eye(size, dtype=factor.dtype)
    return _as_update(mix, jnp.zeros(size, factor.dtype))


def _as_update(mix: Matrix, coef: Float[Array, " components"]) -> LinearUpdate:
    columns = tuple(map(tuple, entries(mix.T)))
    return LinearUpdate(columns, tuple(coef[i] for i in range(len(columns))))
