"""What is drawn of a trial in p dimensions: spikes, samples, starts."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array

from .._model import SpikedModel
from .._order_parameters.components_start import start_mixture
from .._order_parameters.initial import start_moments
from .._rule import AbstractAlgorithm, AbstractSubspaceRule, initial_states
from .._start import AbstractGaussianStart, AbstractStart, FirstSamples
from .._types import ScheduleState, TrialKey, Vector
from .base import SIGNAL, SPIKE
from .basis import extend_basis
from .deflation import Targets
from .subspace_step import linear_update, orthonormalising


def sample_spikes(
    model: SpikedModel, p: int, key: TrialKey, phase: Any
) -> tuple[Vector, ...]:
    """Returns the spikes of a trial in one phase of the model, orthogonal to each other."""
    key = jr.fold_in(jr.fold_in(key, SPIKE), phase)
    dtype = model.omega.dtype
    if model.spikes == 1:
        return (model.spike.sample(key, p).astype(dtype),)
    keys = jr.split(key, model.spikes)
    draws = [model.spike.sample(key, p).astype(dtype) for key in keys]
    units, columns = extend_basis((), draws, draws)
    # Spikes of a user's own that lie in the span of others have no direction left.
    eps = float(jnp.finfo(dtype).eps)
    lengths = [column[-1] / math.sqrt(p) for column in columns]
    is_new = [length > eps**0.5 for length in lengths]
    return tuple(
        jnp.where(new, math.sqrt(p), jnp.nan) * unit
        for new, unit in zip(is_new, units, strict=True)
    )


def start_noise(key: TrialKey, components: int, like: Vector) -> tuple[Vector, ...]:
    """Returns one standard normal vector for each component."""
    return tuple(jr.normal(key, (components, like.size)).astype(like.dtype))


def sample_starts(
    rule: AbstractAlgorithm,
    model: SpikedModel,
    start: AbstractStart,
    spikes: tuple[Vector, ...],
    key: TrialKey,
    components: int,
) -> tuple[tuple[Vector, ...], tuple[ScheduleState, ...]]:
    """Returns the initial estimates, with the lengths that the start and the rule ask for,
    and the states of their schedules."""
    schedules = initial_states(rule, model.p, components)
    if isinstance(start, FirstSamples):
        units = [xi / jnp.sqrt(model.p) for xi in spikes]
        signals = jr.normal(jr.fold_in(key, SIGNAL), (components, len(spikes)))
        noise = start_noise(key, components, spikes[0])
        ys = [
            sample_of(model, spikes, SampleNoise(tuple(cs), a))
            for cs, a in zip(signals, noise, strict=True)
        ]
        vs, schedules = start_from_samples(rule, model, units, ys)
        return tuple(jnp.sqrt(model.p) * v for v in vs), schedules
    if isinstance(start, AbstractGaussianStart):
        overlaps, scales, lams = start_mixture(rule, model, start, components)
        noise = start_noise(key, components, spikes[0])
        xs = [
            sum((c * xi for c, xi in zip(overlaps[:, i], spikes, strict=True)), s * z)
            for i, (s, z) in enumerate(zip(scales, noise, strict=True))
        ]
    else:
        lams = start_moments(rule, model, start)[1][None]
        xs = [start.sample(key, spikes[0])]
    norms = [jnp.sqrt(jnp.sum(x**2) / model.p) for x in xs]
    scaled = tuple(x * (lam / norm) for x, lam, norm in zip(xs, lams, norms, strict=True))
    if needs_orthonormal(rule):
        gram = [[jnp.sum(a * b) / model.p for a in scaled] for b in scaled]
        update = orthonormalising(gram)
        scaled = tuple(update.apply(scaled, jnp.zeros_like(scaled[0])))
    return scaled, schedules


def needs_orthonormal(rule: AbstractAlgorithm) -> bool:
    """Whether the rule begins with orthonormal estimates."""
    return rule.projects and isinstance(rule, AbstractSubspaceRule)


def start_from_samples(
    rule: AbstractAlgorithm,
    model: SpikedModel,
    units: Sequence[Vector],
    ys: Sequence[Vector],
) -> tuple[tuple[Vector, ...], tuple[ScheduleState, ...]]:
    """Returns the components `x/sqrt(p)` that begin as residuals of the first samples, and
    the states of their schedules: see `FirstSamples`.

    All vectors are in the same orthonormal coordinates, of p dimensions or fewer.

    **Arguments:**

    - `rule`, `model`: the rule and the model.
    - `units`: the directions of the spikes.
    - `ys`: one sample for each component.
    """
    vs: list[Vector] = []
    schedules = initial_states(rule, model.p, len(ys))
    begin = jnp.zeros((), jnp.int32)
    for count, y in enumerate(ys):
        # A rule that acts on all components at once waits until all have begun.
        if count > 0 and not isinstance(rule, AbstractSubspaceRule):
            update, moved = linear_update(
                rule,
                model.p,
                Targets.of(model, count),
                begin,
                [[jnp.sum(a * b) for a in vs] for b in vs],
                [jnp.sum(y * v) for v in vs],
                jnp.sum(y * y),
                [[jnp.sum(unit * v) for v in vs] for unit in units],
                schedules[:count],
            )
            vs, schedules = update.apply(vs, y), (*moved, *schedules[count:])
        for v in vs:
            y = y - jnp.sum(y * v) / jnp.sum(v * v) * v
        length = jnp.sqrt(jnp.sum(y * y)) if rule.projects else jnp.sqrt(model.p)
        vs = [*vs, y / length]
    return tuple(vs), schedules


class SampleNoise(NamedTuple):
    """What is random in a sample, and in the turn of the spikes after it.

    **Arguments:**

    - `cs`, `a`: the factor of each spike, and the noise.
    - `seen`: whether each entry is seen; `None` if all are.
    - `turns`: a normal vector for each spike that turns; `None` if they stand still.
    """

    cs: tuple[Array, ...]
    a: Array
    seen: Array | None = None
    turns: tuple[Array, ...] | None = None


def sample_of(model: SpikedModel, xis: tuple[Vector, ...], noise: SampleNoise) -> Vector:
    """Returns the sample `y` of `eq:data_model`, as the algorithm is fed it."""
    cs, a = jax.tree.map(lambda part: part.astype(xis[0].dtype), (noise.cs, noise.a))
    y = a
    for omega, c, xi in zip(model.omega.reshape(-1), cs, xis, strict=True):
        y = jnp.sqrt(omega / model.p) * c * xi + y
    if model.observed is not None:
        assert noise.seen is not None
        y = jnp.where(noise.seen, y / jnp.sqrt(model.observed), 0)
    return y
