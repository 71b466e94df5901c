"""Several components of a stream of data, by any rule."""

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from tqdm import tqdm

from .._check import Checked, refuse, require_flag, require_instance, require_whole
from .._config import cast, require_stable
from .._engine import defaults
from .._pickling import Pickled
from .._rule import AbstractRule
from .._schedule import AbstractSchedule, Oracle
from .._types import Vector, real_leaves
from .block import BLOCK, Learned, compiled_take, nothing_learned
from .precision import precision_of

_ROWS, _ENTRIES, _ALIGNMENT = 1024, 2**22, 64


class Subspace(Pickled):
    """What a stream has taught so far; pass it back to `stream_pca` to go on.

    `learned` is what the whole blocks of the stream have taught, and `pending` are the
    samples after the last of those. They are taken each time that something is asked, and
    once more in their block when that is full: so the bits do not depend on where a stream
    is cut. A state in float64 is read, copied and pickled in float64, whatever JAX's mode.
    """

    learned: Learned
    pending: Float[np.ndarray, "rows p"]
    rule: AbstractRule
    center: bool = eqx.field(static=True)

    def now(self) -> Learned:
        """With the pending samples, too."""
        if not len(self.pending):
            return self.learned
        batch = _Batch(self.pending)
        # Rows that are not taken. Zeros might be too far from the mean of the others for
        # the squares to be numbers.
        batch.rows[batch.held : BLOCK] = self.pending[0]
        with (
            precision_of(self.pending.dtype),
            _Taking(self.rule, self.learned, self.center) as taking,
        ):
            taking.next(batch, batch.held)
            learned = taking.learned()
        told = self.pending - self.pending[0] if self.center else self.pending
        _require_learned(learned, float(np.max(np.abs(told))), self.count)
        return learned

    @property
    def count(self) -> int:
        """How many samples were seen; it stays at 2^31 - 1 or so, if they are more."""
        return int(self.learned.count) + len(self.pending)

    @property
    def components(self) -> Float[Array, "components p"]:
        """Orthonormal; zero where no sample has begun one yet."""
        with precision_of(self.pending.dtype):
            return self.now().components

    @property
    def eigenvalues(self) -> Float[Array, " components"]:
        """Of the covariance: INO-PCA's norms, or what other rules' components capture."""
        with precision_of(self.pending.dtype):
            return self.now().eigenvalues(self.rule)

    @property
    def mean(self) -> Vector:
        """Of all samples; zero unless they are centred."""
        return self.now().mean


def stream_pca(
    rule: Checked[AbstractRule],
    samples: Any,
    components: Checked[int],
    *,
    state: Checked[Subspace | None] = None,
    center: Checked[bool] = False,
    progress: Any = False,
) -> Subspace:
    """The leading `components` of a stream, `alg:INO-PCA_multiple_pc` with any rule.

    Each sample moves the first component, the part of it orthogonal to that moves the
    second, and so on. A component begins as the first sample that the others before it
    leave something of; from then on `t` is the number of samples before, over p.

    `samples` is an array of shape (samples, p), which may be a memory map larger than
    memory, or an iterable of such arrays or of single samples. `center` subtracts the
    running mean. `state` is what an earlier call returned, to go on from there with the
    same rule, number of components and `center`.

    The rules count on the noise of a feature having about unit variance, for otherwise
    their rates mean something else: `StreamingPCA` sees to that.
    """
    rule = real_leaves(rule)
    require_instance("rule", rule, AbstractRule)
    require_instance("rule.tau", rule.tau, AbstractSchedule)
    if isinstance(rule.tau, Oracle):
        raise ValueError(
            "rule.tau = Oracle() is not allowed: it reads the overlap with the truth, "
            "which data do not tell. Pass a number or another schedule."
        )
    remedy = "pass a whole number of components, at least 1"
    components = require_whole("components", components, 1, remedy)
    center = require_flag("center", center)
    if state is not None:
        require_instance("state", state, Subspace)
    rows = _Rows(samples)
    if state is None:
        state = _begun(rule, components, rows, center)
    _require_fits(state, rule, components, rows, center)
    rule = state.rule
    seen, largest = state.count, 0.0
    batch, other = _Batch(state.pending), _Batch(state.pending[:0])
    # While one batch is taken, on a thread, the other is filled.
    with (
        _Taking(rule, state.learned, center) as taking,
        tqdm(total=rows.total, unit=" samples", desc="fit", disable=not progress) as bar,
    ):
        for some in rows.upto(BLOCK, batch.held):
            largest = max(largest, _require_finite(batch.add(some), some, seen))
            seen += len(some)
            if batch.held == len(batch.rows):
                taking.next(batch, batch.held)
                batch, other = other, batch
                batch.held = 0
            bar.update(len(some))
        whole = batch.held - batch.held % BLOCK
        if whole:
            taking.next(batch, whole)
        learned = taking.learned()
    if int(learned.count):
        _require_learned(learned, largest, seen)
    return Subspace(learned, batch.rows[whole : batch.held].copy(), rule, center)


class _Batch:
    """The samples that go into one call of the compiled program, on the host.

    Of one size for each p, so that there is one program, whose bits do not depend on how
    many samples come at a time. Aligned, because then JAX uses the memory on a CPU
    as it is: to copy the samples into fresh memory takes longer than the components do.
    """

    def __init__(self, held: np.ndarray):
        p, dtype = held.shape[1], held.dtype
        size = max(_ENTRIES // p // BLOCK, 1) * BLOCK
        raw = np.empty(min(size, _ROWS) * p * dtype.itemsize + _ALIGNMENT, np.uint8)
        begin = -raw.ctypes.data % _ALIGNMENT
        self.rows = raw[begin : len(raw) - _ALIGNMENT + begin].view(dtype).reshape(-1, p)
        self.held = 0
        self.add(held)

    def add(self, some: Any) -> np.ndarray:
        """Appends some rows, and returns them as they are held."""
        added = self.rows[self.held : self.held + len(some)]
        with np.errstate(over="ignore"):  # `_require_finite` says it better
            added[:] = some
        self.held += len(some)
        return added


class _Taking:
    """What was learned, and a thread that learns more."""

    def __init__(self, rule: AbstractRule, learned: Learned, center: bool):
        self._rule, self._learned, self._center = rule, learned, center
        self._pool = ThreadPoolExecutor(1)
        self._job: Future[Learned] | None = None
        # What a thread inherits by hand: JAX's contexts belong to the one that made them.
        self._device: Any = jax.config.jax_default_device  # pyright: ignore
        self._x64: bool = jax.config.jax_enable_x64  # pyright: ignore

    def __enter__(self) -> "_Taking":
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown()

    def learned(self) -> Learned:
        """After all batches until now, which may then be filled again."""
        if self._job is not None:
            self._learned, self._job = self._job.result(), None
        return self._learned

    def next(self, batch: _Batch, wanted: int) -> None:
        """Takes the first of its samples; the batch before is done with then."""
        self._job = self._pool.submit(self._take, self.learned(), batch.rows, wanted)

    def _take(self, learned: Learned, rows: np.ndarray, wanted: int) -> Learned:
        with jax.default_device(self._device), jax.enable_x64(self._x64):
            count = jnp.asarray(wanted, jnp.int32)
            run = compiled_take(defaults.on_cpu())
            learned = run(self._rule, learned, jax.device_put(rows), count, self._center)
            # The memory is the program's until it is done.
            return jax.block_until_ready(learned)


class _Rows:
    """The samples, a few at a time, whatever they came as."""

    def __init__(self, samples: Any):
        if isinstance(samples, (np.ndarray, jax.Array)):
            self.total, arrays = len(_rows(samples)), iter([samples])
        elif isinstance(samples, (str, bytes, Mapping)) or not isinstance(
            samples, Iterable
        ):
            remedy = "pass an array of shape (samples, p) or an iterable of them"
            refuse("samples", samples, remedy)
        else:
            self.total, arrays = None, iter(samples)
        first = next(arrays, None)
        self.p = None if first is None else _rows(first).shape[1]
        self.dtype = None if first is None else _precision(_rows(first).dtype)
        self._first, self._others = first, arrays

    def _arrays(self) -> Iterator[Any]:
        if self._first is not None:
            yield _rows(self._first)
        for array in self._others:
            array = _rows(array)
            _require_width(array.shape[1], self.p)
            yield array

    def upto(self, size: int, held: int) -> Iterator[Any]:
        """Pieces that, after the `held` samples before, fill blocks of that size."""
        for array in self._arrays():
            done = 0
            while done < len(array):
                some = array[done : done + size - held]
                yield some
                done, held = done + len(some), (held + len(some)) % size


def _rows(array: Any) -> Any:
    """The array as samples, if it can be one: a single sample is a row."""
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


def _precision(dtype: Any) -> Any:
    """That of the samples, as far as JAX's mode allows."""
    wide = jnp.result_type(float)
    return np.dtype(np.float32) if dtype in (np.float32, np.float16) else np.dtype(wide)


def _begun(rule: AbstractRule, components: int, rows: _Rows, center: bool) -> Subspace:
    if rows.p is None or rows.dtype is None:
        raise ValueError("samples are empty: pass at least one sample, or a state.")
    if components > rows.p:
        raise ValueError(
            f"components = {components} is not allowed: samples of p = {rows.p} features "
            "have no more than p."
        )
    require_stable(rule.tau, rows.p)
    rule = cast(rule, rows.dtype)
    learned = nothing_learned(rule, components, rows.p, rows.dtype)
    return Subspace(learned, np.zeros((0, rows.p), rows.dtype), rule, center)


def _require_fits(
    state: Subspace, rule: AbstractRule, components: int, rows: _Rows, center: bool
) -> None:
    dtype, (had, p) = state.pending.dtype, state.learned.vectors.shape
    if _precision(dtype) != dtype:
        raise ValueError(
            f"state in {dtype} is not allowed while JAX's mode is float32: go on in "
            "jax.enable_x64(True), or begin anew without a state."
        )
    shown = lambda rule: eqx.tree_pformat(rule, short_arrays=False, width=1000)
    same_rule = eqx.tree_equal(cast(rule, dtype), state.rule)
    for name, value, before, same in (
        ("rule", shown(rule), shown(state.rule), same_rule),
        ("components", components, had, components == had),
        ("center", center, state.center, center == state.center),
    ):
        if not same:
            raise ValueError(
                f"{name} = {value} is not allowed: the state has {before}. Pass the same, "
                "or begin anew without a state."
            )
    if rows.p is not None:
        _require_width(rows.p, p)


def _require_width(width: int, p: int | None) -> None:
    if width != p:
        raise ValueError(
            f"samples with {width} features are not allowed after some with {p}: "
            "all samples of a stream have the same."
        )


def _require_finite(added: np.ndarray, some: Any, seen: int) -> float:
    """The largest size of a number in the samples, if they are all finite."""
    largest = float(max(np.max(added), -np.min(added)))  # NaN if there is one
    if np.isfinite(largest):
        return largest
    finite = np.isfinite(some)
    if finite.all():
        top = np.max(np.abs(some))
        raise ValueError(
            f"samples of up to {top:.3g} are not allowed in {added.dtype}: "
            "pass them in a larger unit, or in float64 in jax.enable_x64(True)."
        )
    good = int(np.argmin(finite.all(axis=1)))
    raise ValueError(
        "The samples contain NaN or infinity, the first of them after "
        f"{seen + good} good ones: remove or impute those."
    )


def _require_learned(learned: Learned, largest: float, seen: int) -> None:
    """That the squares of the samples are neither infinite nor, by rounding, zero."""
    if not np.all(np.isfinite(learned.vectors)):
        raise ValueError(
            f"The components diverged within the first {seen} samples: pass a smaller tau, "
            "or samples in a larger unit."
        )
    dtype = learned.vectors.dtype
    if 0 < largest < np.finfo(dtype).tiny ** 0.5 and not np.any(learned.vectors):
        raise ValueError(
            f"samples of up to {largest:.3g} are not allowed in {dtype}, where their "
            "squares are 0: pass them in a smaller unit."
        )
