"""The exact Markov chain of the overlap and the norm: O(1) a step in any dimension.

The noise is isotropic, so that a sample acts on the estimate only through its components
along the spike and along the part of the estimate orthogonal to it, and through the length
of its other components. With `u = x.xi/p` and `w = |x - u xi|/sqrt(p)`, one step is

    y_u ~ N(0, 1 + omega),  y_w ~ N(0, 1),  noise_rest ~ chi^2(p - 2)
    y.x/sqrt(p) = u y_u + w y_w,   |x|^2/p = u^2 + w^2,   |y|^2 = y_u^2 + y_w^2 + noise_rest
    u' = update(u, y_u),   w'^2 = update(w, y_w)^2 + (rescale coef)^2 noise_rest

where `update` is the rank-one update of the rule, and `rescale` and `coef` are its factors.
The chain has the law of the p-dimensional algorithm at every p, not only in the limit.
"""

import math
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array

from .._check import as_dtype, as_flag, is_known, require, require_whole
from .._config import Config, known_rates
from .._model import SpikedModel
from .._noise import chi_square, normals, words_of
from .._order_parameters.initial import start_moments
from .._rule import AbstractRule, initial_state
from .._start import AbstractGaussianStart, AbstractStart
from .._types import Count, Real, ScheduleState, TrialKey, Vector, Words
from . import defaults
from .base import (
    LONGEST_VECTOR,
    NOISE,
    SNAPSHOT,
    START,
    SWITCH,
    AbstractEngine,
    AbstractPreparedEngine,
    sample_spike,
    vector_length,
)
from .update import Step, rank_one_update, scan_steps


def _chunk(chunk: Any) -> int | None:
    # A loop of one step is compiled without the loop, and rounds differently.
    if chunk is None:
        return None
    return require_whole("chunk", chunk, 2, "pass a whole number, at least 2")


class Chain(AbstractEngine):
    """The exact Markov chain of the overlap and the norm: O(1) a step in any dimension.

    It has the same law as `Stream` at every p, from a few random numbers a step.

    The state is float64, whatever JAX's mode: a sample changes it by about tau/p of itself,
    which float32 would round away. On a CPU that takes 5 % longer. With `dtype="float32"`
    the change of `q` and `lam` over a run is off by 1 % at tau/p = 1e-6, and a smaller rate
    is refused. In float64 a rate of 0.5 is resolved up to p = 1e14; at 1e15 the change is
    off by up to 16 %, which over the longest run that there is, 2^31 samples, amounts to
    2e-8.

    **Arguments:**

    - `chunk`: how many steps' noise is drawn at a time. Results depend on it by rounding
      alone.
    - `snapshots`: whether to return the whole vectors `x` and `xi` at the times of
      observation, drawn exactly, at O(p) an observation.
    - `dtype`: the precision of the state, by default float64.

    **Example:**

    ```pycon
    >>> import jax.random as jr
    >>> import inopca_jax as ino
    >>> config = ino.Config(model=ino.SpikedModel(p=100), ts=[0.0, 1.0, 2.0])
    >>> engine = ino.Chain(snapshots=True)
    >>> runs = ino.simulate(config, key=jr.key(0), trials=4, engine=engine)
    >>> runs.q.shape, runs.x.shape
    ((4, 3), (4, 3, 100))
    ```
    """

    chunk: int | None = eqx.field(static=True, converter=_chunk, default=None)
    snapshots: bool = eqx.field(static=True, converter=as_flag("snapshots"), default=False)
    dtype: Any = eqx.field(static=True, converter=as_dtype, default=None)

    def prepare(self, config: Config) -> "PreparedChain":
        model, start = config.model, config.start
        dtype = jnp.dtype("float64" if self.dtype is None else self.dtype)
        if dtype == jnp.float32:
            _require_resolved(config)
        # The part of x orthogonal to the spike is uniformly directed if it is so at the
        # start, until the first switch. From then on x has components along old spikes.
        is_gaussian = isinstance(start, AbstractGaussianStart)
        switches = len(model.phases()) - 1
        tracks_vector = self.snapshots or switches > (1 if is_gaussian else 0)
        length = None
        if self.snapshots:
            remedy = "Lower p, or leave snapshots out."
            length = vector_length(model.p, "Chain(snapshots=True)", remedy)
        elif switches > 0 or not is_gaussian:
            user = "a Chain with a switch of the spike or a start that is not Gaussian"
            remedy = "Use Diffusion(), or one spike and a WarmStart or ColdStart."
            length = vector_length(model.p, user, remedy)
        if tracks_vector and length is not None and length < 4:
            raise ValueError(
                f"p = {length} is not allowed for a Chain with snapshots, or with switches "
                "of the spike for which it has to track the whole vector: that takes three "
                "directions and p >= 4. Use Stream()."
            )
        tile = defaults.vector_tile() if tracks_vector else defaults.chain_tile()
        chunk = defaults.chain_chunk() if self.chunk is None else int(self.chunk)
        return PreparedChain(dtype, tile, chunk, self.snapshots, tracks_vector, length)


class Frame(eqx.Module):
    """The vectors of a chain that tracks the whole estimate.

    The estimate is `x = u xi + sqrt(p) (v axis + w e)`, where `e` is uniformly distributed
    on the unit vectors orthogonal to `xi` and to the unit vector `axis`.
    """

    v: Real
    axis: Vector
    xi: Vector


class ChainState(eqx.Module):
    """The state of the chain: the estimate's component `u` along the spike, and `w` across.

    Without a `frame`, `u = x.xi/p`, `w = |x - u xi|/sqrt(p)` and `lam^2 = u^2 + w^2`. With
    a `frame`, `w` is also orthogonal to its axis, and `lam^2 = u^2 + v^2 + w^2`.
    """

    u: Real
    w: Real
    schedule: ScheduleState
    frame: Frame | None


class PreparedChain(AbstractPreparedEngine):
    """A `Chain` for configs of one structure.

    `tracks_vector` says whether the state has a `Frame`. `length` is the length of vectors,
    `None` if there are none; then `p` may be traced.
    """

    dtype: Any = eqx.field(static=True)
    tile: int = eqx.field(static=True)
    chunk: int = eqx.field(static=True)
    snapshots: bool = eqx.field(static=True)
    tracks_vector: bool = eqx.field(static=True)
    length: int | None = eqx.field(static=True)

    def steps_per_time(self, p: Any) -> Any:
        return p

    def steps_per_call(self, p: float) -> int:
        return defaults.steps_per_call(cost=1000)

    def init(
        self, rule: AbstractRule, model: SpikedModel, start: AbstractStart, key: TrialKey
    ) -> ChainState:
        _, lam0 = start_moments(rule, model, start)
        schedule = initial_state(rule, model.p)
        key_start = jr.fold_in(key, START)
        if isinstance(start, AbstractGaussianStart) and not self.tracks_vector:
            along, across = start.mixture()
            z, others = _coordinate_and_others(key_start, model.p, lam0.dtype)
            # In units of sqrt(p): along xi, c + s z/sqrt(p); across it, s sqrt(others/p).
            u = along + across * z / jnp.sqrt(model.p)
            w = across * jnp.sqrt(others / model.p)
            scale = lam0 / jnp.sqrt(u**2 + w**2)
            return ChainState(u * scale, w * scale, schedule, None)
        xi = self._spike(model, key, 0)
        z = jr.normal(key_start, xi.shape).astype(xi.dtype)
        frame, u = _decompose(xi, start.sample(key_start, xi), fallback=z)
        scale = lam0 / jnp.sqrt(u**2 + frame.v**2)
        u, v = u * scale, frame.v * scale
        if not self.tracks_vector:
            return ChainState(u, v, schedule, None)
        frame = eqx.tree_at(lambda f: f.v, frame, v)
        return ChainState(u, jnp.zeros_like(u), schedule, frame)

    def advance(
        self,
        rule: AbstractRule,
        model: SpikedModel,
        key: TrialKey,
        state: ChainState,
        k: Step,
        stop: Step,
    ) -> ChainState:
        words = words_of(jr.fold_in(key, NOISE))
        return scan_steps(
            lambda steps: (draw_noise(words, steps, model.p, self.tracks_vector),),
            lambda state, index, noise: chain_step(rule, model, state, index, noise),
            state,
            k,
            stop,
            self.chunk,
        )

    def observe(
        self, key: TrialKey, state: ChainState, k: Step
    ) -> tuple[ChainState, dict[str, Array]]:
        vectors = {}
        if self.snapshots:
            x, state = _draw_vector(key, state, k)
            assert state.frame is not None
            vectors = dict(x=x, xi=state.frame.xi)
        v = 0.0 if state.frame is None else state.frame.v
        lam = jnp.sqrt(state.u**2 + state.w**2 + v**2)
        return state, dict(q=state.u / lam, lam=lam) | vectors

    def switch(
        self,
        old: SpikedModel,
        new: SpikedModel,
        key: TrialKey,
        state: ChainState,
        k: Step,
        phase: Count,
    ) -> ChainState:
        xi = self._spike(new, key, phase)
        if state.frame is not None:
            x, _ = _draw_vector(key, state, k)
            frame, u = _decompose(xi, x, fallback=state.frame.axis)
            return ChainState(u, jnp.zeros_like(u), state.schedule, frame)
        cosine = jnp.sum(self._spike(old, key, phase - 1) * xi) / new.p
        # The part of x orthogonal to the first spike is uniformly directed in p - 1
        # dimensions; `e` is its coordinate along the part of xi orthogonal to that spike.
        key = jr.fold_in(jr.fold_in(key, SWITCH), phase)
        z, others = _coordinate_and_others(key, new.p - 1, xi.dtype)
        e = z / jnp.sqrt(z**2 + others)
        sine = jnp.sqrt(jnp.maximum(1 - cosine**2, 0))  # the cosine may round to above 1
        u = state.u * cosine + state.w * sine * e
        lam2 = state.u**2 + state.w**2
        w = jnp.sqrt(jnp.maximum(lam2 - u**2, 0))
        return ChainState(u, w, state.schedule, None)

    def _spike(self, model: SpikedModel, key: TrialKey, phase: Any) -> Vector:
        assert self.length is not None
        return sample_spike(model, self.length, key, phase)


_LEAST_STEP = 1e-6
"""The least tau/p in float32; there the change of the overlap is off by 1 %."""


def _require_resolved(config: Config) -> None:
    """Refuses steps that float32 would round away."""
    if not is_known(config.model.p, config.ts):
        return
    p, end = float(config.model.p), float(config.ts[-1])
    for tau in known_rates(config.rule.tau, p, end):
        require(
            "tau",
            tau,
            lambda x: x >= _LEAST_STEP * p,
            f"steps of tau/p below {_LEAST_STEP:g}, here p = {p:.16g}, are lost in the "
            "rounding of dtype = float32; leave dtype out",
        )


def _coordinate_and_others(key: TrialKey, n: Any, dtype: Any) -> tuple[Array, Array]:
    """Returns one coordinate of a standard normal vector in n dimensions, and the squared
    length of the others."""
    words, zero = words_of(key), jnp.zeros((), jnp.uint32)
    z, other = (a.astype(dtype) for a in normals(words, zero, zero))
    n = jnp.asarray(n, dtype)
    # `chi_square` is in float32, whose rounding is not small against the scatter at a huge
    # n. There this is what it proposes, in more digits; it would reject one in about 10 n.
    d = (n - 1) / 2 - 1 / 3
    proposal = 2 * d * (1 + other / jnp.sqrt(9 * d)) ** 3
    exact = chi_square(words, zero, 1, n - 1).astype(dtype)
    return z, jnp.where(n > LONGEST_VECTOR, proposal, exact)


def draw_noise(words: Words, steps: Array, p: Any, tracks_vector: bool) -> dict[str, Array]:
    """Returns standard normals for the tracked directions, and `noise_rest`, the squared
    length of the noise orthogonal to them."""
    c0 = steps.astype(jnp.uint32)
    along, across = normals(words, c0, jnp.zeros_like(c0))
    noise = dict(along=along, across=across)
    if tracks_vector:
        noise["axis"] = normals(words, c0, jnp.ones_like(c0))[0]
    # In float32 it is rounded by 6e-8 at most. Over all of the steps that a counter has,
    # 2^31, that moves the norm by less than 0.003 of the standard deviation of its noise.
    freedom = p - 3 if tracks_vector else p - 2
    return noise | dict(noise_rest=chi_square(words, c0, 2, freedom))


def chain_step(
    rule: AbstractRule,
    model: SpikedModel,
    state: ChainState,
    index: Step,
    noise: dict[str, Array],
) -> ChainState:
    """Returns the state after one more sample; see the top of this file."""
    u, w, frame = state.u, state.w, state.frame
    noise = {name: part.astype(u.dtype) for name, part in noise.items()}
    y_u = jnp.sqrt(1 + model.omega) * noise["along"]
    y_w, noise_rest = noise["across"], noise["noise_rest"]
    lam2, yx, yy = u**2 + w**2, u * y_u + w * y_w, y_u**2 + y_w**2 + noise_rest
    if frame is not None:
        v, y_v = frame.v, noise["axis"]
        lam2, yx, yy = lam2 + v**2, yx + v * y_v, yy + y_v**2
    update, schedule = rank_one_update(
        rule, model.p, model.omega, index, lam2, yx, yy, u, state.schedule
    )
    if frame is not None:
        v = update.apply(frame.v, noise["axis"])
        frame = eqx.tree_at(lambda f: f.v, frame, v)
    w2_noise = (update.rescale * update.coef) ** 2 * noise_rest
    new_w = jnp.sqrt(update.apply(w, y_w) ** 2 + w2_noise)
    return ChainState(update.apply(u, y_u), new_w, schedule, frame)


def _draw_vector(key: TrialKey, state: ChainState, k: Step) -> tuple[Vector, ChainState]:
    """Returns the vector `x`, drawn given the state, and the state that goes on from it."""
    frame = state.frame
    assert frame is not None
    p = frame.xi.size
    z = jr.normal(jr.fold_in(jr.fold_in(key, SNAPSHOT), k), (p,)).astype(state.u.dtype)
    z = z - jnp.sum(z * frame.xi) / p * frame.xi
    z = z - jnp.sum(z * frame.axis) * frame.axis
    e = z / jnp.sqrt(jnp.sum(z**2))
    across = frame.v * frame.axis + state.w * e
    x = state.u * frame.xi + math.sqrt(p) * across
    length = jnp.sqrt(frame.v**2 + state.w**2)
    moved = length > 0
    axis = jnp.where(moved, across / jnp.where(moved, length, 1), frame.axis)
    frame = Frame(length, axis, frame.xi)
    return x, ChainState(state.u, jnp.zeros_like(state.w), state.schedule, frame)


def _decompose(xi: Vector, x: Vector, fallback: Vector) -> tuple[Frame, Real]:
    """Returns the frame and `u` with `x = u xi + sqrt(p) v axis`.

    Where `x` is parallel to `xi`, the axis is taken from `fallback`.
    """
    p = xi.size

    def orthogonal_part(vector: Vector) -> Vector:
        return vector - jnp.sum(vector * xi) / p * xi

    def unit(vector: Vector) -> Vector:
        return vector / jnp.sqrt(jnp.sum(vector**2))

    u, part = jnp.sum(x * xi) / p, orthogonal_part(x)
    v = jnp.sqrt(jnp.sum(part**2) / p)
    # Below this, `part` is rounding error and points anywhere.
    is_tilted = v > 100 * jnp.finfo(xi.dtype).eps * jnp.abs(u)
    # Twice, because a short part keeps few digits of its orthogonality at once.
    axis = unit(orthogonal_part(unit(jnp.where(is_tilted, part, fallback))))
    return Frame(jnp.where(is_tilted, v, 0), axis, xi), u
