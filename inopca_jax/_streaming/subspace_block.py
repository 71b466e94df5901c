"""Updates all components at once by a block of samples, for an `AbstractSubspaceRule`.

As long as there are components that no sample has started, a sample starts one of them: as
the part of the sample that is orthogonal to those before. A sample that lies in their span
updates them instead.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from .._engine.subspace_step import subspace_step
from .._rule import AbstractSubspaceRule, SubspaceState
from .._rule.small_matrices import apply, inverse
from .._timeline import select
from .._types import Matrix, Real


class SubspaceSteps(NamedTuple):
    """What changes from sample to sample. The basis consists of the components before the
    block and of its samples."""

    state: SubspaceState
    """The states of the schedule and of the rule."""
    captured: Float[Array, " components"]
    """As in `Estimates`."""
    change: Float[Array, "components basis"]
    """The change of the coordinates of the components in the basis."""
    products: Float[Array, "components basis"]
    """The inner products of the components with the basis."""
    gram: Matrix
    """The inner products of the components with each other."""


class Sample(NamedTuple):
    """A sample of a block."""

    coordinates: Float[Array, " basis"]
    products: Float[Array, " basis"]
    before: Int[Array, ""]
    """The number of samples before it, of those that are steps."""
    weight: Real
    """Its weight in `captured`."""
    is_valid: Bool[Array, ""]


def take_subspace_steps(
    rule: AbstractSubspaceRule,
    p: int,
    begin: SubspaceSteps,
    samples: Sample,
    lengths: Float[Array, " basis"],
) -> SubspaceSteps:
    """Returns what the samples of a block make of the components.

    **Arguments:**

    - `rule`: the rule.
    - `p`: the dimension.
    - `begin`: the components before the block; their change is zero.
    - `samples`: the samples, with an axis of samples in front.
    - `lengths`: the lengths of the vectors of the basis.
    """
    components = len(begin.gram)
    identity = jnp.eye(*begin.change.shape, dtype=lengths.dtype)

    def one(steps: SubspaceSteps, sample: Sample) -> tuple[SubspaceSteps, None]:
        full = identity + steps.change
        # The square of a vector that is zero is exactly zero.
        begun = jnp.diagonal(steps.gram) != 0
        gram = steps.gram + jnp.diag(1 - begun.astype(lengths.dtype))
        w = _dots(steps.products, sample.coordinates)
        yy = jnp.sum(sample.coordinates * sample.products)

        def step() -> SubspaceSteps:
            mix, coef, state = subspace_step(
                rule, p, sample.before, gram, w, yy, steps.state
            )
            mix = jnp.where(begun[:, None] & begun[None, :], mix, 0)
            coef = jnp.where(begun, coef, 0)
            half = _rows(mix, gram)
            pull = w + apply(mix.T, w)
            new = half + half.T + _rows(mix, half.T)
            new = new + coef[:, None] * pull[None, :] + pull[:, None] * coef[None, :]
            new = new + yy * coef[:, None] * coef[None, :]
            own = w**2 / jnp.diagonal(gram) - steps.captured
            return SubspaceSteps(
                state,
                steps.captured + jnp.where(begun, sample.weight * own, 0),
                steps.change + _rows(mix, full) + coef[:, None] * sample.coordinates[None],
                steps.products
                + _rows(mix, steps.products)
                + coef[:, None] * sample.products[None],
                steps.gram + new,
            )

        def start_or_step() -> SubspaceSteps:
            shares = apply(inverse(gram), w)
            rest = sample.coordinates - _dots(full.T, shares)
            products = sample.products - _dots(steps.products.T, shares)
            square = jnp.sum(rest * products)
            # A rest of this size consists of rounding errors: the sample is in the span.
            eps = 100 * jnp.finfo(lengths.dtype).eps
            gross = jnp.sum(jnp.abs(rest) * lengths)
            begins = square > jnp.maximum(eps * gross**2, eps**2 * yy)
            length = jnp.sqrt(jnp.where(begins, square, 1))
            scale = 1 / length if rule.projects else jnp.full_like(length, p**-0.5)
            is_next = jnp.arange(components) == jnp.argmin(begun)
            put = lambda row, rows: jnp.where(is_next[:, None], row[None, :], rows)
            own = jnp.where(begun, scale * _dots(full, products), 0)
            own = jnp.where(is_next, scale**2 * square, own)
            started = SubspaceSteps(
                steps.state,
                jnp.where(is_next, square, steps.captured),
                put(scale * rest, steps.change),
                put(scale * products, steps.products),
                put(own, put(own, steps.gram).T),
            )
            return select(begins, started, step())

        new = lax.cond(jnp.all(begun), step, start_or_step)
        return select(sample.is_valid, new, steps), None

    return lax.scan(one, begin, samples)[0]


def _dots(rows: Float[Array, "n m"], vector: Float[Array, " m"]) -> Float[Array, " n"]:
    """Returns the products of a vector with some rows. Sums and not `dot`: on an
    accelerator a dot may round its inputs."""
    return jnp.sum(rows * vector[None, :], axis=1)


def _rows(mix: Matrix, rows: Float[Array, "components n"]) -> Float[Array, "components n"]:
    """Returns `mix^T rows`."""
    return jnp.matmul(mix.T, rows, precision=lax.Precision.HIGHEST)
