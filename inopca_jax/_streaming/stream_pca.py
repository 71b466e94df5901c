"""`stream_pca`: principal components of data in one pass, by any rule."""

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from tqdm import tqdm

from .._check import Checked, refuse, require_flag, require_instance, require_whole
from .._config import require_stable
from .._module import PublicModule, show
from .._numerics import cast
from .._types import Vector
from .block import BLOCK
from .components import required_method
from .method import Method, State, block_size, compiled_next_state, initial_state
from .sketch import Sketch

# The largest number of rows and of entries in a batch, and its alignment in bytes.
_ROWS, _ENTRIES, _ALIGNMENT = 1024, 2**22, 64


def precision_of(dtype: Any) -> AbstractContextManager[Any]:
    """Returns a context with JAX's x64 mode on for float64, and unchanged otherwise."""
    return jax.enable_x64(True) if dtype == np.float64 else nullcontext()


class Subspace(PublicModule):
    """The state of `stream_pca` after a number of samples.

    Pass it to `stream_pca` to continue the stream. Read `components` of shape
    `(components, p)`, `eigenvalues` of shape `(components,)`, `mean` of shape `(p,)` and
    `count`. If it is in float64 it is read, copied and pickled in float64, whatever JAX's
    mode. `stream_pca` returns it; do not construct it.

    **Arguments:**

    - `estimates`: the estimates after the complete blocks of the stream.
    - `pending`: the samples after those. They are used whenever a result is read, and once
        more when their block is complete: so the bits of a result do not depend on how the
        stream was cut into calls.
    - `rule`: the rule.
    - `center`: whether the running mean is subtracted.

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> from inopca_jax import data
    >>> stream = data.Drift([9.0, 4.0], p=20).samples(1000)
    >>> subspace = ino.stream_pca(ino.InoPCA(0.1), stream, components=2)
    >>> subspace.count, subspace.components.shape, subspace.eigenvalues.shape
    (1000, (2, 20), (2,))
    ```
    """

    estimates: State
    pending: Float[np.ndarray, "rows p"]
    rule: Method
    center: bool = eqx.field(static=True)

    @classmethod
    def empty(
        cls, rule: Method, components: int, p: int, dtype: Any, center: bool
    ) -> "Subspace":
        """Returns the state before the first sample."""
        rule = cast(rule, dtype)
        estimates = initial_state(rule, components, p, dtype)
        return cls(estimates, np.zeros((0, p), dtype), rule, center)

    def with_rule(self, rule: Method) -> "Subspace":
        """Returns the state with a rule that has other numbers, for the samples to come."""
        rule = cast(rule, self.pending.dtype)
        return Subspace(self.estimates, self.pending, rule, self.center)

    def now(self) -> Any:
        """Returns the estimates after all samples, including the pending ones."""
        if not len(self.pending):
            return self.estimates
        batch = _Batch(self.pending)
        # Padding. Zeros might be so far from the mean of the samples that their squares
        # overflow.
        batch.rows[batch.filled : self.block] = self.pending[0]
        with precision_of(self.pending.dtype):
            estimates = _next_state(
                self.rule, self.estimates, batch.rows, batch.filled, self.center
            )
        samples = self.pending - self.pending[0] if self.center else self.pending
        _require_in_range(estimates, float(np.max(np.abs(samples))), self.count)
        return estimates

    def appended(self, samples: Float[np.ndarray, "rows p"]) -> "Subspace":
        """Returns the state after samples, finite and of the type of `pending`, that do not
        complete a block: they are kept for later, and nothing is computed."""
        pending = np.concatenate([self.pending, samples])
        assert len(pending) < self.block
        return Subspace(self.estimates, pending, self.rule, self.center)

    @property
    def block(self) -> int:
        """The number of samples that are used at a time."""
        return block_size(self.rule, self.pending.shape[1])

    @property
    def count(self) -> int:
        """The number of samples; it stops at about 2^31 in a longer stream."""
        return int(self.estimates.count) + len(self.pending)

    @property
    def components(self) -> Float[Array, "components p"]:
        """The components, orthonormal; a row is zero if no sample has started it yet."""
        with precision_of(self.pending.dtype):
            return self.now().components

    @property
    def eigenvalues(self) -> Float[Array, " components"]:
        """Estimates of the covariance's eigenvalues: the norms of INO-PCA's vectors, the
        eigenvalues of the `Sketch`, or the mean square along the components for other
        rules."""
        with precision_of(self.pending.dtype):
            return self.now().eigenvalues(self.rule)

    @property
    def mean(self) -> Vector:
        """The mean of all samples; zero unless they are centred."""
        return self.now().mean


def _next_state(
    rule: Method, estimates: State, rows: np.ndarray, valid: int, center: bool
) -> State:
    """Returns the estimates after the first `valid` samples of an aligned buffer."""
    count = jnp.asarray(valid, jnp.int32)
    run = compiled_next_state(rule)
    # The program reads the buffer until it ends.
    return jax.block_until_ready(run(rule, estimates, jax.device_put(rows), count, center))


def stream_pca(
    rule: Checked[Method],
    samples: Any,
    components: Checked[int],
    *,
    state: Checked[Subspace | None] = None,
    center: Checked[bool] = False,
    progress: Any = False,
) -> Subspace:
    """Returns estimates of the leading principal components of data, from one pass.

    With a rule this is `alg:INO-PCA_multiple_pc`: each sample updates the first
    component, its part orthogonal to that updates the second, and so on. A component starts
    as the first sample that does not lie in the span of those before it. From then on the
    time is `t = k/p` after `k` samples. With a `Sketch` it is PCA of the samples so far, or
    of those in its memory.

    A rule's rate assumes that the noise of a feature has about unit variance.
    `StreamingPCA` rescales the data; this function does not.

    **Arguments:**

    - `rule`: the rule, such as `InoPCA(0.1)` or `CCIPCA()`, or a `Sketch`.
    - `samples`: an array of shape `(samples, p)`, which may be a memory map larger than
        memory; or an iterable of such arrays, or of single samples of shape `(p,)`.
    - `components`: the number of components, at most `p`.
    - `state`: what an earlier call returned, to continue that stream with the same `rule`,
        `components` and `center`.
    - `center`: whether to subtract the running mean.
    - `progress`: whether to show a progress bar.

    **Returns:**

    A `Subspace`, with `components` of shape `(components, p)` and `eigenvalues` of shape
    `(components,)`.

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> from inopca_jax import data
    >>> rule, drift = ino.InoPCA(0.1), data.Drift([9.0, 4.0], p=20)
    >>> first = ino.stream_pca(rule, drift.samples(1000), components=2)
    >>> more = ino.stream_pca(rule, drift.samples(2000), components=2, state=first)
    >>> more.count
    3000
    >>> bool(ino.grassmann_distance(more.components, drift.basis(0)) < 0.5)
    True
    ```
    """
    rule = required_method(rule)
    remedy = "pass a whole number of components, at least 1"
    components = require_whole("components", components, 1, remedy)
    center = require_flag("center", center)
    if state is not None:
        require_instance("state", state, Subspace)
    reader = _SampleReader(samples)
    if state is None:
        state = _empty_subspace(rule, components, reader, center)
    _require_same_stream(state, rule, components, reader, center)
    rule, size = state.rule, state.block
    count, largest = state.count, 0.0
    batch, other = _Batch(state.pending), _Batch(state.pending[:0])
    # While a thread uses one batch, the other is filled.
    with (
        _Updater(rule, state.estimates, center) as updater,
        tqdm(total=reader.total, unit=" samples", desc="fit", disable=not progress) as bar,
    ):
        for piece in reader.pieces(size, batch.filled):
            largest = max(largest, _require_finite(batch.add(piece), piece, count))
            count += len(piece)
            if batch.filled == len(batch.rows):
                updater.submit(batch, batch.filled)
                batch, other = other, batch
                batch.filled = 0
            bar.update(len(piece))
        in_blocks = batch.filled - batch.filled % size
        if in_blocks:
            updater.submit(batch, in_blocks)
        estimates = updater.result()
    if int(estimates.count):
        _require_in_range(estimates, largest, count)
    return Subspace(estimates, batch.rows[in_blocks : batch.filled].copy(), rule, center)


class _Batch:
    """A buffer on the host for the samples of one call of the compiled program.

    It has one size for each p, so that there is one program, whose bits do not depend on
    how many samples come at a time. It is aligned, because then JAX uses the memory on a
    CPU without a copy: to copy the samples takes longer than to compute the components.
    """

    def __init__(self, samples: np.ndarray):
        p, dtype = samples.shape[1], samples.dtype
        size = max(_ENTRIES // p // BLOCK, 1) * BLOCK
        raw = np.empty(min(size, _ROWS) * p * dtype.itemsize + _ALIGNMENT, np.uint8)
        begin = -raw.ctypes.data % _ALIGNMENT
        self.rows = raw[begin : len(raw) - _ALIGNMENT + begin].view(dtype).reshape(-1, p)
        self.filled = 0
        self.add(samples)

    def add(self, samples: Any) -> np.ndarray:
        """Appends samples, and returns them in the type of the buffer."""
        added = self.rows[self.filled : self.filled + len(samples)]
        with np.errstate(over="ignore"):  # `_require_finite` raises an error instead
            added[:] = samples
        self.filled += len(samples)
        return added


class _Updater:
    """Estimates, and a thread that updates them by batches of samples."""

    def __init__(self, rule: Method, estimates: State, center: bool):
        self._rule, self._estimates, self._center = rule, estimates, center
        self._pool = ThreadPoolExecutor(1)
        self._job: Future[State] | None = None
        # JAX's settings belong to a thread, so they are passed on by hand.
        self._device: Any = jax.config.jax_default_device  # pyright: ignore
        self._x64: bool = jax.config.jax_enable_x64  # pyright: ignore

    def __enter__(self) -> "_Updater":
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown()

    def result(self) -> State:
        """Returns the estimates after all batches; these may then be filled again."""
        if self._job is not None:
            self._estimates, self._job = self._job.result(), None
        return self._estimates

    def submit(self, batch: _Batch, valid: int) -> None:
        """Begins an update by the first `valid` samples of a batch, after it has waited for
        the batch before."""
        self._job = self._pool.submit(self._update, self.result(), batch.rows, valid)

    def _update(self, estimates: State, rows: np.ndarray, valid: int) -> State:
        with jax.default_device(self._device), jax.enable_x64(self._x64):
            return _next_state(self._rule, estimates, rows, valid, self._center)


class _SampleReader:
    """Reads samples in small pieces from an array or an iterable of arrays."""

    def __init__(self, samples: Any):
        if isinstance(samples, (np.ndarray, jax.Array)):
            self.total, arrays = len(_as_rows(samples)), iter([samples])
        elif isinstance(samples, (str, bytes, Mapping)) or not isinstance(
            samples, Iterable
        ):
            remedy = "pass an array of shape (samples, p) or an iterable of them"
            refuse("samples", samples, remedy)
        else:
            self.total, arrays = None, iter(samples)
        first = next(arrays, None)
        self.p = None if first is None else _as_rows(first).shape[1]
        self.dtype = None if first is None else _float_type(_as_rows(first).dtype)
        self._first, self._others = first, arrays

    def _arrays(self) -> Iterator[Any]:
        if self._first is not None:
            yield _as_rows(self._first)
        for array in self._others:
            array = _as_rows(array)
            _require_width(array.shape[1], self.p)
            yield array

    def pieces(self, size: int, filled: int) -> Iterator[Any]:
        """Yields pieces that fill blocks of `size` samples, of which the first block has
        `filled` already."""
        for array in self._arrays():
            begin = 0
            while begin < len(array):
                piece = array[begin : begin + size - filled]
                yield piece
                begin, filled = begin + len(piece), (filled + len(piece)) % size


def _as_rows(array: Any) -> Any:
    """Returns an array of shape `(samples, p)`; a single sample becomes one row."""
    try:
        array = array if isinstance(array, (np.ndarray, jax.Array)) else np.asarray(array)
    except ValueError:  # rows that differ in length
        refuse("samples", array, "pass arrays of real numbers, of shape (samples, p)")
    array = array[None] if array.ndim == 1 else array
    if array.ndim != 2 or not array.shape[1]:
        raise ValueError(
            f"samples of shape {array.shape} are not allowed: pass shape (samples, p)."
        )
    if np.ma.is_masked(array):
        raise ValueError(
            "samples with masked numbers are not allowed: remove or fill them."
        )
    if array.dtype.kind not in "iuf":
        raise ValueError(
            f"samples of type {array.dtype} are not allowed: pass real numbers."
        )
    return array


def _float_type(dtype: Any) -> Any:
    """Returns the type to compute in: that of the samples, as far as JAX's mode allows."""
    wide = jnp.result_type(float)
    return np.dtype(np.float32) if dtype in (np.float32, np.float16) else np.dtype(wide)


def _empty_subspace(
    rule: Method, components: int, reader: _SampleReader, center: bool
) -> Subspace:
    if reader.p is None or reader.dtype is None:
        raise ValueError("samples are empty: pass at least one sample, or a state.")
    if components > reader.p:
        raise ValueError(
            f"components = {components} is not allowed: samples with p = {reader.p} "
            "features have at most p components."
        )
    if not isinstance(rule, Sketch):
        require_stable(rule, reader.p)
    return Subspace.empty(rule, components, reader.p, reader.dtype, center)


def _require_same_stream(
    state: Subspace,
    rule: Method,
    components: int,
    reader: _SampleReader,
    center: bool,
) -> None:
    """Raises a `ValueError` if the arguments differ from those that the state has."""
    dtype, p = state.pending.dtype, state.pending.shape[1]
    old_components = state.estimates.size
    if _float_type(dtype) != dtype:
        raise ValueError(
            f"state in {dtype} is not allowed while JAX's mode is float32: continue in "
            "jax.enable_x64(True), or start a new stream without a state."
        )
    shown = lambda rule: show(rule, width=None)
    same_rule = eqx.tree_equal(cast(rule, dtype), state.rule)
    for name, value, old_value, is_same in (
        ("rule", shown(rule), shown(state.rule), same_rule),
        ("components", components, old_components, components == old_components),
        ("center", center, state.center, center == state.center),
    ):
        if not is_same:
            raise ValueError(
                f"{name} = {value} is not allowed: the state has {old_value}. Pass the "
                "same, or start a new stream without a state."
            )
    if reader.p is not None:
        _require_width(reader.p, p)


def _require_width(width: int, p: int | None) -> None:
    if width != p:
        raise ValueError(
            f"samples with {width} features are not allowed after some with {p}: "
            "pass samples with the same number of features."
        )


def _require_finite(added: np.ndarray, samples: Any, count: int) -> float:
    """Returns the largest absolute value of the samples, if they are all finite.

    **Arguments:**

    - `added`: the samples in the type of the computation.
    - `samples`: the same samples as they were passed.
    - `count`: how many samples came before.
    """
    largest = float(max(np.max(added), -np.min(added)))  # NaN if there is one
    if np.isfinite(largest):
        return largest
    finite = np.isfinite(samples)
    if finite.all():
        largest = np.max(np.abs(samples))
        raise ValueError(
            f"samples of up to {largest:.3g} are not allowed in {added.dtype}: "
            "pass them in a larger unit, or in float64 in jax.enable_x64(True)."
        )
    finite_before = int(np.argmin(finite.all(axis=1)))
    raise ValueError(
        "The samples contain NaN or infinity, for the first time in sample "
        f"{count + finite_before}, counted from 0: remove or impute those."
    )


def _require_in_range(estimates: State, largest: float, count: int) -> None:
    """Raises a `ValueError` if the vectors diverged, or are zero because the squares of the
    samples, of which `largest` is the largest absolute value, underflow."""
    if not np.all(np.isfinite(estimates.vectors)):
        raise ValueError(
            f"The components diverged within the first {count} samples: pass a smaller "
            "tau, or samples in a larger unit."
        )
    dtype = estimates.vectors.dtype
    if 0 < largest < np.finfo(dtype).tiny ** 0.5 and not np.any(estimates.vectors):
        raise ValueError(
            f"samples of up to {largest:.3g} are not allowed in {dtype}, where their "
            "squares are 0: pass them in a smaller unit."
        )
