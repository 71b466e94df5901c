"""Components of a stream of samples of any scale, and what `StreamingPCA` says of them.

It needs no scikit-learn.
"""

from numbers import Integral
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from .._check import refuse, require_instance, require_whole
from .._module import show
from .._rule import CCIPCA, AbstractAlgorithm, as_rule
from .._schedule import AbstractSchedule, Constant
from .automatic import automatic_tau, data_scale
from .block import least_weight
from .sketch import Sketch
from .stream_pca import Subspace, precision_of, stream_pca

_ROWS = 1024
"""How many samples are scaled at a time."""

_MOST_COMPONENTS = 128
"""How many components there are at most if a share of the variance is asked for."""

_AMNESIC = 2.0
"""CCIPCA's amnesic parameter on data: the distances from offline PCA are smaller than with
the 4 of the paper in 14 of 15 cases (five data sets, 5, 16 and 50 components)."""


class Parameters(NamedTuple):
    """The parameters of `StreamingPCA` that may not change within a stream, except for
    `memory`."""

    n_components: Any
    rule: Any
    tau: Any = "auto"
    center: bool = True
    memory: Any = float("inf")

    def require_same(self, others: "Parameters") -> None:
        """Raises a `ValueError` if parameters differ from these, with which a stream
        began."""
        shown = lambda value: show(value, width=None)
        for name, old, new in zip(self._fields[:-1], self[:-1], others[:-1], strict=True):
            # 1 and 1.0 are the same number, and a copy of a rule is the same rule.
            if not (eqx.tree_equal(old, new) or (np.isscalar(old) and old == new)):
                raise ValueError(
                    f"{name} = {shown(new)} is not allowed: the stream began with "
                    f"{shown(old)}. Set it back, or start a new stream with fit."
                )

    def sketch(self) -> Sketch | None:
        """Returns the sketch that the parameters stand for, or None if they have a rule."""
        rule: Any = self.rule
        is_default = np.isscalar(self.memory) and self.memory == np.inf
        if rule is not Sketch and not isinstance(rule, Sketch):
            if not is_default:
                remedy = "a rule forgets by its rate, tau; leave memory out, or the rule"
                refuse("memory", self.memory, remedy)
            return None
        if self.tau != "auto":
            remedy = "the sketch has no rate; pass memory, or a rule"
            refuse("tau", self.tau, remedy)
        if not isinstance(rule, Sketch):  # the class
            return Sketch(self.memory)
        if not is_default:
            remedy = f"rule = {show(rule, width=None)} has its own; leave memory out"
            refuse("memory", self.memory, remedy)
        return rule

    def components(self, samples: int, p: int) -> int:
        """Returns how many components to compute.

        **Arguments:**

        - `samples`: the number of samples in the first call. It is as many components if
            `n_components` is None.
        - `p`: the number of features.
        """
        wanted = self.n_components
        if wanted is None:
            return min(samples, p)
        if isinstance(wanted, (float, np.floating)) and 0 < wanted < 1:
            if self.sketch() is None:
                remedy = "a share of the variance needs rule = Sketch; pass a whole number"
                refuse("n_components", wanted, remedy)
            return min(p, _MOST_COMPONENTS)
        remedy = "pass a whole number of components, at least 1, a share in (0, 1), or None"
        if not isinstance(wanted, Integral):
            raise ValueError(f"n_components = {wanted!r} is not allowed: {remedy}.")
        wanted = require_whole("n_components", wanted, 1, remedy)
        if wanted > p:
            raise ValueError(
                f"n_components = {wanted} is not allowed: pass at most n_features = {p}."
            )
        return wanted


class Components(NamedTuple):
    """What a stream has estimated, as the attributes of `StreamingPCA`.

    - `memory`: the number of samples after which the weight of one has fallen to 1/e.
    - `tau`: the rate if it is constant, else the schedule; None for a sketch.
    - `feature_variance`: the variance of each feature about the mean, as it is in the
        samples; `unbiased` makes it and its sum an estimate for other samples.
    """

    components: Float[np.ndarray, "components p"]
    variance: Float[np.ndarray, " components"]
    mean: Float[np.ndarray, " p"]
    feature_variance: Float[np.ndarray, " p"]
    unbiased: float
    tau: Any
    memory: float


class ScaledStream(NamedTuple):
    """The state of a stream of samples, which are divided by one number.

    - `parameters`: those with which it began.
    - `size`: the number of components.
    - `first`: for a rule, the first samples, until they are enough to determine the scale
        and the rate; then empty.
    - `begun`: the estimates and the scale, None before that.
    - `samples_seen`: the number of samples.
    """

    parameters: Parameters
    size: int
    first: Float[np.ndarray, "samples p"]
    begun: tuple[Subspace, float] | None
    samples_seen: int

    @classmethod
    def empty(
        cls, parameters: Parameters, p: int, dtype: Any, samples: int = 1
    ) -> "ScaledStream":
        """Returns a stream without samples, computed in float32 if they have that type, and
        else in float64.

        **Arguments:**

        - `samples`: the number of samples in the first call, which is as many components
            if `parameters` has no number of them.
        """
        dtype = np.dtype(np.float32 if dtype == np.float32 else np.float64)
        size, first = parameters.components(samples, p), np.zeros((0, p), dtype)
        with precision_of(dtype):
            sketch = parameters.sketch()
            if sketch is None:
                return cls(parameters, size, first, None, 0)
            center = parameters.center
            begun = Subspace.empty(sketch, size, p, dtype, center), 1.0
        return cls(parameters, size, first, begun, 0)

    @property
    def first_samples(self) -> int:
        """The number of samples that determine a rule's scale and its rate."""
        return max(64, 4 * self.size)

    def with_memory(self, memory: Any) -> "ScaledStream":
        """Returns the stream with another memory for the samples to come."""
        parameters = self.parameters._replace(memory=memory)
        sketch = parameters.sketch()
        if sketch is None or self.begun is None:
            return self
        subspace, scale = self.begun
        with precision_of(subspace.pending.dtype):
            subspace = subspace.with_rule(sketch)
        return self._replace(parameters=parameters, begun=(subspace, scale))

    def updated(self, X: Float[np.ndarray, "samples p"]) -> "ScaledStream":
        """Returns the stream after more samples."""
        first, begun = self.first, self.begun
        samples_seen = self.samples_seen + len(X)
        if begun is None:
            missing = self.first_samples - len(first)
            is_new = not len(first)
            first = np.concatenate([first, _scaled(X[:missing], 1.0, first.dtype)])
            X = X[missing:]
            is_complete = len(first) == self.first_samples
            if is_complete or is_new:  # when new, so that errors are raised now
                started = _begin(self.parameters, self.size, first)
                begun, first = (started, first[:0]) if is_complete else (None, first)
            else:
                data_scale(first, self.parameters.center)
        if begun is not None:
            subspace, scale = begun
            begun = self._continued(subspace, scale, X), scale
        return self._replace(first=first, begun=begun, samples_seen=samples_seen)

    def _continued(self, subspace: Subspace, scale: float, X: np.ndarray) -> Subspace:
        dtype, rule, center = subspace.pending.dtype, subspace.rule, subspace.center
        is_short = len(X) < subspace.block - len(subspace.pending)
        if isinstance(rule, Sketch):
            _require_finite_squares(X, dtype)
            missing = subspace.block - self.samples_seen
            if missing > 0:
                first = np.concatenate([subspace.pending, X[:missing]])
                data_scale(first.astype(dtype), center)
            if is_short:
                return subspace.appended(X.astype(dtype))
        if is_short:
            return subspace.appended(_scaled(X, scale, dtype))
        starts = range(0, len(X), _ROWS)
        pieces = (_scaled(X[i : i + _ROWS], scale, dtype) for i in starts)
        with precision_of(dtype):
            return stream_pca(rule, pieces, self.size, state=subspace, center=center)

    def results(self, seed: int) -> Components:
        """Returns the components, by falling variance. Random directions of a seed stand
        for those that the samples do not determine."""
        subspace, scale = self.begun or _begin(self.parameters, self.size, self.first)
        rule: Any = subspace.rule
        dtype = subspace.pending.dtype
        with precision_of(dtype):
            found = _read(rule, subspace.now())
            vectors, variance, mean, squares, unbiased, weight = map(np.asarray, found)
        is_determined = np.any(vectors != 0, axis=1)
        # Infinite if the data have grown so much that their squares overflow.
        with np.errstate(over="ignore"):
            variance = np.where(is_determined, variance.astype(float) * scale**2, 0)
            squares = (squares.astype(float) * scale**2).astype(dtype)
            variance = variance.astype(dtype)
        order = np.argsort(-variance, kind="stable")
        filled = _fill_zero_rows(vectors[order], seed)
        is_sketch = isinstance(rule, Sketch)
        with np.errstate(divide="ignore"):
            memory = float(rule.memory) if is_sketch else float(1 / weight)
        return Components(
            components=_fix_signs(filled),
            variance=variance[order],
            mean=(mean * scale).astype(dtype),
            feature_variance=squares,
            unbiased=float(unbiased),
            tau=None if is_sketch else _plain(rule.tau),
            memory=memory,
        )


@eqx.filter_jit
def _read(rule: Any, estimates: Any) -> tuple[Any, ...]:
    """Returns all that a stream has estimated, by one program."""
    weight = 0.0 if isinstance(rule, Sketch) else least_weight(rule, estimates)
    return (
        estimates.components,
        estimates.eigenvalues(rule),
        estimates.mean,
        estimates.variance,
        estimates.correction,
        jnp.asarray(weight),
    )


def _plain(tau: AbstractSchedule) -> Any:
    return float(tau.value) if isinstance(tau, Constant) else tau


def _require_finite_squares(X: np.ndarray, dtype: Any) -> None:
    """Raises a `ValueError` if the length of a sample, squared, is no number."""
    largest = max(float(np.max(X)), -float(np.min(X)))
    most = (float(np.finfo(dtype).max) / X.shape[1]) ** 0.5
    if largest > most:
        raise ValueError(
            f"samples of up to {largest:.3g} are not allowed: explained_variance_ has "
            f"squares of them, and those are beyond {dtype}. Rescale the data, so that "
            f"they are below {most:.1g}."
        )


def _scaled(X: np.ndarray, scale: float, dtype: Any) -> np.ndarray:
    """Returns the samples divided by `scale`, in a type."""
    X = X if X.dtype in (np.float32, np.float64) else X.astype(float)
    try:
        with np.errstate(over="raise"):
            return (X / scale).astype(dtype)
    except FloatingPointError:
        raise ValueError(
            f"samples of up to {np.max(np.abs(X)):.3g} are not allowed in a stream that "
            f"began in {dtype} with a standard deviation of about {scale:.3g}: rescale or "
            "remove those that are far beyond the others."
        ) from None


def _begin(
    parameters: Parameters, components: int, first: np.ndarray
) -> tuple[Subspace, float]:
    """Returns a rule's estimates from the first samples, and the scale that they
    determine."""
    rule, tau, center = parameters.rule, parameters.tau, parameters.center
    scale = data_scale(first, center)
    with precision_of(first.dtype):
        samples = _scaled(first, scale, first.dtype)
        rule = _build_rule(rule, tau, samples, components, center)
        subspace = stream_pca(rule, samples, components, center=center)
    return subspace, scale


def _fill_zero_rows(vectors: np.ndarray, seed: int) -> np.ndarray:
    """Returns the vectors with random directions, orthogonal to the others, in place of
    zeros."""
    is_zero = ~np.any(vectors != 0, axis=1)
    if not is_zero.any():
        return vectors
    determined = vectors[~is_zero]
    drawn = np.random.RandomState(seed).standard_normal((np.sum(is_zero), vectors.shape[1]))
    basis, _ = np.linalg.qr(np.concatenate([determined, drawn]).T)
    filled = np.concatenate([determined, basis.T[len(determined) :]])
    return filled.astype(vectors.dtype)


def _fix_signs(vectors: np.ndarray) -> np.ndarray:
    """Returns each vector with the sign that makes its largest entry positive: the data do
    not determine it."""
    largest = np.take_along_axis(vectors, np.argmax(abs(vectors), axis=1)[:, None], axis=1)
    return vectors * np.where(largest < 0, -1, 1).astype(vectors.dtype)


def _build_rule(
    rule: Any, tau: Any, first: np.ndarray, components: int, center: bool
) -> AbstractAlgorithm:
    """Returns the rule of the parameters `rule` and `tau`, checked."""
    if isinstance(rule, AbstractAlgorithm):
        if tau != "auto":
            raise ValueError(
                f"tau = {tau!r} is not allowed with rule = {rule!r}, which has its own: "
                "pass the rule's class, or leave tau out."
            )
        return rule
    if rule is CCIPCA:
        if tau != "auto":
            raise ValueError(
                f"tau = {tau!r} is not allowed with rule = CCIPCA, which has its own: pass "
                "another rule, or leave tau out."
            )
        return CCIPCA(_AMNESIC)
    if not isinstance(rule, type):
        as_rule(rule)
    if isinstance(tau, str) and tau != "auto":
        raise ValueError(f"tau = {tau!r} is not allowed: pass a number or 'auto'.")
    is_automatic = isinstance(tau, str)
    built = as_rule(rule(1.0 if is_automatic else tau))
    require_instance("tau", built.tau, AbstractSchedule)
    if is_automatic:
        built = as_rule(rule(automatic_tau(built, first, components, center)))
    return built
