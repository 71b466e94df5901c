"""The exact Markov chain of the overlaps and the norms: O(1) a step in any dimension.

The noise is isotropic, so that a sample acts on the estimates only through its components
along a few directions, and through the length of the rest. Let `V = x/sqrt(p)` be the
estimates. The chain keeps their coordinates `along` D tracked orthonormal directions, the
first of which are those of the spikes, and `across`: an upper triangular matrix that has
the inner products of what is orthogonal to all tracked directions. One step is

    y ~ N(0, 1 + omega_j) along spike j, N(0, 1) along the other directions tracked,
        N(0, 1) along each of the directions of `across`, and noise_rest ~ chi^2(p - D - r)
    V' = V (I + mix) + y coef^T

with the coefficients of `deflation.py`, which follow from `V^T V`, `V^T y` and `|y|^2`. In
the basis of `across` and of the rest of the noise the new part across is a matrix with one
row more, whose triangular factor is the next `across`. With one spike and one component,
`along` and `across` are one number each.

The spikes are the only tracked directions unless whole vectors are asked for, or would have
to be known at a later switch of the spikes: then the part of each estimate orthogonal to
the spikes at the last observation is a direction too.

If the spikes turn, each sample is followed by a change of the coordinates (`turning.py`).
The directions at the last observation then stand still in a frame that turns, and are
further columns of `along` and `across`, which no sample changes.

The chain has the law of the p-dimensional algorithm at every p, not only in the limit.
"""

import math
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array

from .._check import as_dtype, as_flag, is_known, require, require_whole
from .._config import Config, known_rates
from .._model import SpikedModel
from .._noise import chi_square, normals, words_of
from .._order_parameters.components_start import start_mixture
from .._rule import AbstractAlgorithm, initial_states, require_rates
from .._start import AbstractGaussianStart, AbstractStart, FirstSamples
from .._types import Count, Real, ScheduleState, TrialKey, Vector, Words
from . import defaults
from .base import (
    LONGEST_VECTOR,
    NOISE,
    SNAPSHOT,
    START,
    TURN,
    AbstractEngine,
    AbstractPreparedEngine,
    observed_components,
    vector_length,
)
from .basis import dot, extend_basis, triangular_factor
from .deflation import Targets
from .draws import (
    needs_orthonormal,
    sample_spikes,
    sample_starts,
    start_from_samples,
    start_noise,
)
from .subspace_step import linear_update, orthonormalising
from .turning import turned_coordinates
from .update import Step, scan_steps
from .vector_step import require_start_of_vectors, vectors_of


def _chunk(chunk: Any) -> int | None:
    # A loop of one step is compiled without the loop, and rounds differently.
    if chunk is None:
        return None
    return require_whole("chunk", chunk, 2, "pass a whole number, at least 2")


class Chain(AbstractEngine):
    """The exact Markov chain of the overlaps and the norms: O(1) a step in any dimension.

    It has the same law as `Stream` at every p, from a few random numbers a step: one for
    each spike and each component, and one more. There have to be more dimensions than
    spikes and components together. Of samples with missing entries it is the chain of
    complete samples at `alpha omega`, the limit that `SpikedModel` explains, and has the
    law of `Stream` at large p only; so do its snapshots.

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
        require_rates(config.rule, "Chain")
        model, start = config.model, config.start
        dtype = jnp.dtype("float64" if self.dtype is None else self.dtype)
        if dtype == jnp.float32:
            _require_resolved(config)
        # The part of x orthogonal to the spike is uniformly directed if it is so at the
        # start, until the first switch. From then on x has components along old spikes.
        is_gaussian = isinstance(start, AbstractGaussianStart)
        switches = len(model.phases()) - 1
        turns = any(phase.turning is not None for phase in model.phases())
        tracks_vectors = self.snapshots or switches > (
            1 if is_gaussian and not turns else 0
        )
        length = None
        if self.snapshots:
            remedy = "Lower p, or leave snapshots out."
            length = vector_length(model.p, "Chain(snapshots=True)", remedy)
        elif switches > 0 or not is_gaussian:
            user = "a Chain with a switch of the spike or a start that is not Gaussian"
            remedy = "Use Diffusion(), or one spike and a WarmStart or ColdStart."
            length = vector_length(model.p, user, remedy)
        spikes, components = model.phases()[0].spikes, config.components
        vectors = vectors_of(config.rule, components)
        require_start_of_vectors(config)
        if vectors and dtype == jnp.float32:
            raise ValueError(
                "dtype = float32 is not allowed for a Chain with the schedule "
                f"{type(config.rule.tau).__name__}, whose state may move too slowly for "
                "it: leave dtype out."
            )
        _require_directions(model.p, spikes, components + vectors, tracks_vectors, turns)
        tile = defaults.vector_tile() if tracks_vectors else defaults.chain_tile()
        chunk = defaults.chain_chunk() if self.chunk is None else int(self.chunk)
        return PreparedChain(
            dtype,
            tile,
            chunk,
            spikes,
            components,
            vectors,
            self.snapshots,
            tracks_vectors,
            turns,
            length,
        )


def _require_directions(
    p: Any, spikes: int, components: int, tracks_vectors: bool, turns: bool
) -> None:
    """Refuses a dimension without a direction beyond those that the chain follows."""
    if not is_known(p):
        return
    if components > p - spikes - 1:
        raise ValueError(
            f"components = {components} with {spikes} spikes at p = {int(p)} is not "
            "allowed with Chain: it follows one direction for each of them, and at least "
            "one has to be left. Pass at most p - spikes - 1 components, or use Stream()."
        )
    if turns:
        columns = spikes + 2 * components if tracks_vectors else components
        least = 2 * spikes + columns
        if p < least:
            raise ValueError(
                f"p = {int(p)} is not allowed for a Chain with {spikes} spikes that turn "
                f"and components = {components}: that takes p >= {least}, as every spike "
                "turns into a direction of its own. Use Stream()."
            )
    least = spikes + 2 * components + 1
    if tracks_vectors and p < least:
        raise ValueError(
            f"p = {int(p)} is not allowed for a Chain with snapshots, or with switches "
            "of the spike for which it has to track whole vectors: that takes one "
            "direction for each spike, two for each component, and one more, so that "
            f"p >= {least}. Use Stream()."
        )


class ChainState(eqx.Module):
    """The state of the chain.

    **Arguments:**

    - `along`: for each tracked direction, the coordinates of all components.
    - `across`: the rows of the upper triangular matrix, from the diagonal on.
    - `schedules`: the states of the schedules, as of `initial_states`.
    - `directions`: the tracked directions as unit vectors; `None` if they are not needed.

    If the spikes turn, their directions now are those of `along`, and `directions` are unit
    vectors that stand still: columns of `along` and `across`, after the components.
    """

    along: tuple[tuple[Real, ...], ...]
    across: tuple[tuple[Real, ...], ...]
    schedules: tuple[ScheduleState, ...]
    directions: tuple[Vector, ...] | None

    @property
    def moving(self) -> int:
        """The number of columns that a sample moves: the components, and after them the
        vectors of their schedules."""
        known = 0 if self.directions is None else len(self.directions)
        # As many as rows of `along`: the directions are those rows, and no columns.
        return len(self.across) - (known if known != len(self.along) else 0)

    def columns(self) -> list[list[Real]]:
        """Returns the coordinates of each column, without those that are zero."""
        rows = (*self.along, *self.across)
        first = [0] * len(self.along) + list(range(len(self.across)))
        return [
            [row[i - start] for row, start in zip(rows, first, strict=True) if start <= i]
            for i in range(len(self.across))
        ]

    def gram(self) -> list[list[Real]]:
        """Returns the inner products of the columns that a sample moves."""
        columns = self.columns()[: self.moving]
        return [[dot(a, b) for b in columns] for a in columns]

    def orthonormal(self) -> "ChainState":
        """Returns the state with the components made orthonormal."""
        update, zero = orthonormalising(self.gram()), jnp.zeros_like(self.across[0][0])
        own = self.moving
        along = tuple((*update.apply(row[:own], zero), *row[own:]) for row in self.along)
        across = tuple(
            (*update.apply(row[: own - a], zero, first=a)[a:], *row[own - a :])
            if a < own
            else row
            for a, row in enumerate(self.across)
        )
        return ChainState(along, across, self.schedules, self.directions)


class PreparedChain(AbstractPreparedEngine):
    """A `Chain` for configs of one structure.

    `vectors` is how many vectors the schedules keep: columns after the components.
    `tracks_vectors` says whether directions other than those of the spikes are tracked, and
    `turns` whether the spikes turn.
    `length` is the length of vectors, `None` if there are none; then `p` may be traced.
    """

    dtype: Any = eqx.field(static=True)
    tile: int = eqx.field(static=True)
    chunk: int = eqx.field(static=True)
    spikes: int = eqx.field(static=True)
    components: int = eqx.field(static=True)
    vectors: int = eqx.field(static=True)
    snapshots: bool = eqx.field(static=True)
    tracks_vectors: bool = eqx.field(static=True)
    turns: bool = eqx.field(static=True)
    length: int | None = eqx.field(static=True)

    @property
    def moving(self) -> int:
        """How many columns a sample moves."""
        return self.components + self.vectors

    def steps_per_time(self, p: Any) -> Any:
        return p

    def steps_per_call(self) -> int:
        return defaults.steps_per_call(cost=1000 * self.moving**2)

    def init(
        self,
        rule: AbstractAlgorithm,
        model: SpikedModel,
        start: AbstractStart,
        key: TrialKey,
    ) -> ChainState:
        key_start = jr.fold_in(key, START)
        if not isinstance(start, AbstractGaussianStart) or self.tracks_vectors:
            spikes = self._spikes(model, key, 0)
            xs, schedules = sample_starts(
                rule, model, start, spikes, key_start, self.components
            )
            fallbacks = start_noise(key_start, self.moving, spikes[0])
            xs = (*xs, *[jnp.zeros_like(spikes[0])] * self.vectors)
            return self._decompose(spikes, xs, fallbacks, schedules)
        if isinstance(start, FirstSamples):
            return self._from_samples(rule, model, key_start)
        schedules = initial_states(rule, model.p, self.components)
        overlaps, scales, lams = start_mixture(rule, model, start, self.components)
        along, across = [], []
        for i in range(self.components):
            z, length = self._coordinates(key_start, i, model.p, lams.dtype)
            # In units of sqrt(p): along spike j, c_j + s z_j/sqrt(p).
            scale = scales[i]
            noise = [scale * z_j / jnp.sqrt(model.p) for z_j in z]
            first = noise[: self.spikes]
            us = [c + part for c, part in zip(overlaps[:, i], first, strict=True)]
            ws = [*noise[self.spikes :], scale * length / jnp.sqrt(model.p)]
            column = [*us, *ws]
            factor = lams[i] / jnp.sqrt(dot(column, column))
            along.append([u * factor for u in us])
            across.append([w * factor for w in ws])
        self._append_zeros(along, across)
        state = ChainState(_rows(along), _triangle(across), schedules, None)
        return state.orthonormal() if needs_orthonormal(rule) else state

    def _from_samples(
        self, rule: AbstractAlgorithm, model: SpikedModel, key: TrialKey
    ) -> ChainState:
        """Returns the state after as many samples as there are components, in coordinates
        along the spikes and along the noise of these samples, made orthonormal."""
        omegas, ys = model.effective_omega.reshape(-1), []
        for i in range(self.components):
            z, length = self._coordinates(key, i, model.p, omegas.dtype)
            signals = [jnp.sqrt(1 + w) * a for w, a in zip(omegas, z, strict=False)]
            zeros = [jnp.zeros_like(length)] * (self.components - 1 - i)
            ys.append(jnp.stack([*signals, *z[self.spikes :], length, *zeros]))
        units = list(jnp.eye(self.spikes, ys[0].size, dtype=omegas.dtype))
        vs, schedules = start_from_samples(rule, model, units, ys)
        columns = [list(v) for v in vs]
        starts = [column[: self.spikes] for column in columns]
        parts = [column[self.spikes :] for column in columns]
        triangle = triangular_factor(parts, [None] * self.components)
        self._append_zeros(starts, triangle)
        along = _rows(starts)
        return ChainState(along, _triangle(triangle), schedules, None)

    def _append_zeros(self, along: list[list[Real]], across: list[list[Real]]) -> None:
        """Appends the columns of the schedules' vectors before the first sample."""
        zero = jnp.zeros_like(across[0][0])
        for i in range(self.components, self.moving):
            along.append([zero] * self.spikes)
            across.append([zero] * (i + 1))

    def _coordinates(
        self, key: TrialKey, i: int, p: Any, dtype: Any
    ) -> tuple[list[Array], Array]:
        """Returns the coordinates of standard normal vector number `i` along the spikes and
        along the vectors before it, and the length of the rest."""
        z, others = _coordinates_and_others(key, i, self.spikes + i, p, dtype)
        return z, jnp.sqrt(others)

    def advance(
        self,
        rule: AbstractAlgorithm,
        model: SpikedModel,
        key: TrialKey,
        state: ChainState,
        k: Step,
        stop: Step,
    ) -> ChainState:
        words = words_of(jr.fold_in(key, NOISE))
        targets = Targets.of(model, self.components)
        columns = len(state.across)
        count = len(state.along) + columns
        draw = lambda steps: draw_noise(words, steps, model.p, count)
        step = lambda *args: chain_step(rule, model, targets, *args)
        if model.turning is None:
            draws = lambda steps: (draw(steps),)
            return scan_steps(draws, step, state, k, stop, self.chunk)
        keys = [jr.fold_in(jr.fold_in(key, TURN), j) for j in range(self.spikes)]
        n, turn_words = model.p - self.spikes, [words_of(k) for k in keys]

        def draw_both(steps: Array):
            # Normal vectors orthogonal to the spikes, each with one coordinate more.
            turns = [draw_noise(w, steps, n, columns + j) for j, w in enumerate(turn_words)]
            return ((draw(steps), turns),)

        def step_and_turn(state: ChainState, index: Step, noise) -> ChainState:
            sample, turns = noise
            return turn_step(model, step(state, index, sample), turns)

        return scan_steps(draw_both, step_and_turn, state, k, stop, self.chunk)

    def observe(
        self, key: TrialKey, state: ChainState, k: Step
    ) -> tuple[ChainState, dict[str, Array]]:
        vectors = {}
        if self.snapshots:
            spikes, xs, fallbacks = self._draw_vectors(key, state, k)
            state = self._decompose(spikes, xs, fallbacks, state.schedules)
            vectors = dict(xs=xs[: self.components], xis=spikes)
        along = [row[: self.components] for row in state.along[: self.spikes]]
        gram = [row[: self.components] for row in state.gram()[: self.components]]
        return state, observed_components(along, gram, **vectors)

    def switch(
        self,
        old: SpikedModel,
        new: SpikedModel,
        key: TrialKey,
        state: ChainState,
        k: Step,
        phase: Count,
    ) -> ChainState:
        if state.directions is None:
            units = _units(self._spikes(old, key, phase - 1))
            state = ChainState(state.along, state.across, state.schedules, units)
        _, xs, fallbacks = self._draw_vectors(key, state, k)
        return self._decompose(
            self._spikes(new, key, phase), xs, fallbacks, state.schedules
        )

    def _spikes(self, model: SpikedModel, key: TrialKey, phase: Any) -> tuple[Vector, ...]:
        assert self.length is not None
        return sample_spikes(model, self.length, key, phase)

    def _decompose(
        self,
        spikes: tuple[Vector, ...],
        xs: tuple[Vector, ...],
        fallbacks: Sequence[Vector],
        schedules: tuple[ScheduleState, ...],
    ) -> ChainState:
        """Returns the state with these estimates."""
        units, root_p = _units(spikes), math.sqrt(spikes[0].size)
        new, columns = extend_basis(units, [x / root_p for x in xs], fallbacks)
        along = _rows([column[: self.spikes] for column in columns])
        parts = [column[self.spikes :] for column in columns]
        if not self.tracks_vectors:
            return ChainState(along, _triangle(parts), schedules, None)
        zero = jnp.zeros_like(parts[0][0])
        if self.turns:
            return self._with_known_columns(along, parts, schedules, (*units, *new))
        padded = [[*part, *[zero] * (len(parts) - len(part))] for part in parts]
        along = (*along, *_rows(padded))
        nothing = tuple((zero,) * (self.moving - i) for i in range(self.moving))
        return ChainState(along, nothing, schedules, (*units, *new))

    def _with_known_columns(
        self,
        along: tuple[tuple[Real, ...], ...],
        parts: Sequence[Sequence[Real]],
        schedules: tuple[ScheduleState, ...],
        known: tuple[Vector, ...],
    ) -> ChainState:
        """Returns the state with the directions of the spikes, and of what the components
        add to them, as further columns."""
        one = jnp.ones_like(parts[0][0])
        zero, size = jnp.zeros_like(one), self.moving + len(known)
        along = tuple(
            (*row, *(one if j == k else zero for k in range(len(known))))
            for j, row in enumerate(along)
        )
        columns = [[*part, *[zero] * (size - len(part))] for part in parts]
        columns += [[zero] * size for _ in range(self.spikes)]
        columns += [
            [one if a == i else zero for a in range(size)] for i in range(self.moving)
        ]
        return ChainState(along, _triangle(columns), schedules, known)

    def _draw_vectors(
        self, key: TrialKey, state: ChainState, k: Step
    ) -> tuple[tuple[Vector, ...], tuple[Vector, ...], list[Vector]]:
        """Returns the spikes, the estimates drawn given the state, and the directions that
        their draw has added, of which no estimate has been known yet."""
        known = state.directions
        assert known is not None
        root_p = math.sqrt(known[0].size)
        key = jr.fold_in(jr.fold_in(key, SNAPSHOT), k)
        if self.turns:
            return self._draw_turned_vectors(key, state, known)
        z = start_noise(key, self.moving, known[0])
        new, _ = extend_basis(known, z, z)
        directions = (*known, *new)
        xs = tuple(
            root_p * _combination(directions, rows)
            for rows in zip(*_padded(state), strict=True)
        )
        return tuple(root_p * unit for unit in known[: self.spikes]), xs, new

    def _draw_turned_vectors(
        self, key: TrialKey, state: ChainState, known: tuple[Vector, ...]
    ) -> tuple[tuple[Vector, ...], tuple[Vector, ...], list[Vector]]:
        """Returns what `_draw_vectors` does, of spikes that turn.

        In the frame of `along` and `across` the known directions are orthonormal columns.
        Others are completed to an orthonormal basis, and stand for random directions
        orthogonal to the known ones.
        """
        root_p, rows = math.sqrt(known[0].size), _padded(state)
        matrix = jnp.stack([jnp.stack(row) for row in rows])
        columns = list(matrix[:, self.moving :].T)
        basis, _ = extend_basis((), columns, columns)
        missing = len(rows) - len(basis)
        z = list(jr.normal(jr.fold_in(key, 0), (missing, len(rows))).astype(matrix.dtype))
        completed, _ = extend_basis(basis, z, z)
        z = start_noise(key, missing, known[0])
        new, _ = extend_basis(known, z, z)
        vectors = (*known, *new)

        def as_vector(coordinates: Array) -> Vector:
            factors = [jnp.sum(unit * coordinates) for unit in (*basis, *completed)]
            return root_p * _combination(vectors, factors)

        spikes = jnp.eye(self.spikes, len(rows), dtype=matrix.dtype)
        xs = tuple(as_vector(matrix[:, i]) for i in range(self.moving))
        return tuple(map(as_vector, spikes)), xs, new[: self.moving]


def _units(spikes: tuple[Vector, ...]) -> tuple[Vector, ...]:
    return tuple(xi / math.sqrt(xi.size) for xi in spikes)


def _combination(vectors: Sequence[Vector], factors: Sequence[Real]) -> Vector:
    total = factors[0] * vectors[0]
    for factor, vector in zip(factors[1:], vectors[1:], strict=True):
        total = total + factor * vector
    return total


def _padded(state: ChainState) -> list[tuple[Real, ...]]:
    """Returns the rows of the coordinates, with zeros below the diagonal of `across`."""
    zero = jnp.zeros_like(state.across[0][0])
    return [*state.along, *((zero,) * i + row for i, row in enumerate(state.across))]


def _rows(columns: Sequence[Sequence[Real]]) -> tuple[tuple[Real, ...], ...]:
    return tuple(zip(*columns, strict=True))


def _triangle(columns: Sequence[Sequence[Real]]) -> tuple[tuple[Real, ...], ...]:
    """Returns the rows of an upper triangle, from the diagonal on."""
    size = len(columns)
    return tuple(tuple(columns[i][a] for i in range(a, size)) for a in range(size))


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
    for model in config.model.phases():
        if model.turning is not None:
            require(
                "turning",
                model.turning,
                lambda x: (x == 0) | (x >= _LEAST_STEP * p),
                f"a turn of delta/p below {_LEAST_STEP:g}, here p = {p:.16g}, is lost in "
                "the rounding of dtype = float32; leave dtype out",
            )


def _coordinates_and_others(
    key: TrialKey, column: int, count: int, n: Any, dtype: Any
) -> tuple[list[Array], Array]:
    """Returns `count` coordinates of a standard normal vector in n dimensions, and the
    squared length of the others."""
    words, c0 = words_of(key), jnp.full((), column, jnp.uint32)
    z = [a.astype(dtype) for a in _normals(words, c0, count + 1)]
    n = jnp.asarray(n, dtype)
    # `chi_square` is in float32, whose rounding is not small against the scatter at a huge
    # n. There this is what it proposes, in more digits; it would reject one in about 10 n.
    freedom = n - count
    d = freedom / 2 - 1 / 3
    proposal = 2 * d * (1 + z[count] / jnp.sqrt(9 * d)) ** 3
    exact = chi_square(words, c0, _lanes(count + 1), freedom).astype(dtype)
    return z[:count], jnp.where(n > LONGEST_VECTOR, proposal, exact)


def _lanes(count: int) -> int:
    """Returns how many counters give `count` normals."""
    return -(-count // 2)


def _normals(words: Words, c0: Array, count: int) -> list[Array]:
    """Returns `count` standard normals for each counter."""
    pairs = [normals(words, c0, jnp.full_like(c0, lane)) for lane in range(_lanes(count))]
    return [z for pair in pairs for z in pair][:count]


def draw_noise(words: Words, steps: Array, p: Any, count: int) -> dict[str, Any]:
    """Returns `count` standard normals for each step, one for every direction of the chain,
    and `noise_rest`, the squared length of the noise orthogonal to them."""
    c0 = steps.astype(jnp.uint32)
    # In float32 it is rounded by 6e-8 at most. Over all of the steps that a counter has,
    # 2^31, that moves the norm by less than 0.003 of the standard deviation of its noise.
    noise_rest = chi_square(words, c0, max(2, _lanes(count)), p - count)
    return dict(normals=_normals(words, c0, count), noise_rest=noise_rest)


def chain_step(
    rule: AbstractAlgorithm,
    model: SpikedModel,
    targets: Targets,
    state: ChainState,
    index: Step,
    noise: dict[str, Any],
) -> ChainState:
    """Returns the state after one more sample; see the top of this file."""
    dtype, columns = state.across[0][0].dtype, len(state.across)
    components, moving = len(targets.omegas), state.moving
    z = [part.astype(dtype) for part in noise["normals"]]
    noise_rest = noise["noise_rest"].astype(dtype)
    # The spikes and `across` come first: the numbers that a chain without more directions
    # has too.
    omegas = model.effective_omega.reshape(-1)
    first, more = model.spikes, model.spikes + columns
    y_along = [jnp.sqrt(1 + omega) * a for omega, a in zip(omegas, z, strict=False)]
    y_along, y_across = [*y_along, *z[more:]], z[first:more]
    y = [*y_along, *y_across]
    update, schedules = linear_update(
        rule,
        model.p,
        targets,
        index,
        state.gram(),
        [dot(column, y) for column in state.columns()[:moving]],
        dot(y, y) + noise_rest,
        [row[:components] for row in state.along[:first]],
        state.schedules,
    )
    # A sample changes the components and the schedules' vectors, and no further column.
    along = tuple(
        (*update.apply(row[:moving], y_a), *row[moving:])
        for row, y_a in zip(state.along, y_along, strict=True)
    )
    zero, across = [jnp.zeros_like(noise_rest)] if columns > moving else [], []
    for a, (row, y_a) in enumerate(zip(state.across, y_across, strict=True)):
        own = max(moving - a, 0)
        new = update.apply(row[:own], y_a, first=min(a, moving))
        across.append([*new, *zero * (a - moving), *row[own:]])
    last = [*update.coef, *zero * (columns - moving)]
    weights = [None] * columns + [noise_rest]
    triangle = triangular_factor(list(zip(*across, last, strict=True)), weights)
    return ChainState(along, _triangle(triangle), schedules, state.directions)


def turn_step(
    model: SpikedModel, state: ChainState, noise: Sequence[dict[str, Any]]
) -> ChainState:
    """Returns the state after the spikes have turned; see `turning.py`."""
    assert model.turning is not None
    dtype = state.across[0][0].dtype
    draws = [
        ([z.astype(dtype) for z in draw["normals"]], draw["noise_rest"].astype(dtype))
        for draw in noise
    ]
    size = len(state.across)
    columns = [[state.across[a][i - a] for a in range(i + 1)] for i in range(size)]
    along, triangle = turned_coordinates(
        state.along, columns, model.turning, model.p, draws
    )
    along = tuple(map(tuple, along))
    return ChainState(along, _triangle(triangle), state.schedules, state.directions)
