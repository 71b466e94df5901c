"""Components of a stream of samples of any scale, by a rate that is chosen for them.

It is what `StreamingPCA` computes, and needs no scikit-learn.
"""

from typing import Any, NamedTuple

import equinox as eqx
import numpy as np
from jaxtyping import Float

from .._check import require_instance
from .._module import show
from .._rule import AbstractAlgorithm, as_rule
from .._schedule import AbstractSchedule, Constant
from .automatic import automatic_tau, data_scale
from .stream_pca import Subspace, precision_of, stream_pca

_ROWS = 1024
"""How many samples are scaled at a time."""


class Parameters(NamedTuple):
    """The parameters of `StreamingPCA` that may not change within a stream."""

    n_components: int
    rule: Any
    tau: Any
    center: bool

    def require_same(self, others: "Parameters") -> None:
        """Raises a `ValueError` if parameters differ from these, with which a stream
        began."""
        shown = lambda value: show(value, width=None)
        for name, old, new in zip(self._fields, self, others, strict=True):
            # 1 and 1.0 are the same number, and a copy of a rule is the same rule.
            if not (eqx.tree_equal(old, new) or (np.isscalar(old) and old == new)):
                raise ValueError(
                    f"{name} = {shown(new)} is not allowed: the stream began with "
                    f"{shown(old)}. Set it back, or start a new stream with fit."
                )

    @property
    def first_samples(self) -> int:
        """The number of samples that determine the scale and the rate."""
        return max(64, 4 * self.n_components)


class Components(NamedTuple):
    """What a stream has estimated, as the attributes of `StreamingPCA`."""

    components: Float[np.ndarray, "components p"]
    variance: Float[np.ndarray, " components"]
    mean: Float[np.ndarray, " p"]
    tau: Any


class ScaledStream(NamedTuple):
    """The state of a stream of samples, which are divided by one number.

    - `first`: the first samples, until they are enough to determine the scale and the rate;
        then empty.
    - `begun`: the estimates and the scale, None before that.
    - `samples_seen`: the number of samples.
    """

    parameters: Parameters
    first: Float[np.ndarray, "samples p"]
    begun: tuple[Subspace, float] | None
    samples_seen: int

    @classmethod
    def empty(cls, parameters: Parameters, p: int, dtype: Any) -> "ScaledStream":
        """Returns a stream without samples, computed in float32 if they have that type, and
        else in float64."""
        dtype = np.float32 if dtype == np.float32 else np.float64
        return cls(parameters, np.zeros((0, p), dtype), None, 0)

    def updated(self, X: Float[np.ndarray, "samples p"]) -> "ScaledStream":
        """Returns the stream after more samples."""
        parameters, first, begun, samples_seen = self
        samples_seen += len(X)
        if begun is None:
            missing = parameters.first_samples - len(first)
            first = np.concatenate([first, _scaled(X[:missing], 1.0, first.dtype)])
            X = X[missing:]
            started = _begin(parameters, first)  # always, so that errors are raised now
            if len(first) == parameters.first_samples:
                begun, first = started, first[:0]
        if begun is not None:
            subspace, scale = begun
            dtype, n = subspace.pending.dtype, parameters.n_components
            rule, center = subspace.rule, subspace.center
            pieces = (
                _scaled(X[i : i + _ROWS], scale, dtype) for i in range(0, len(X), _ROWS)
            )
            with precision_of(dtype):
                subspace = stream_pca(rule, pieces, n, state=subspace, center=center)
            begun = subspace, scale
        return ScaledStream(parameters, first, begun, samples_seen)

    def results(self, seed: int) -> Components:
        """Returns the components, by falling variance. Random directions of a seed stand
        for those that the samples do not determine."""
        subspace, scale = self.begun or _begin(self.parameters, self.first)
        rule, tau = subspace.rule, subspace.rule.tau
        with precision_of(subspace.pending.dtype):
            estimates = subspace.now()
            vectors = np.asarray(estimates.components)
            variance = np.asarray(estimates.eigenvalues(rule), float)
        is_determined = np.any(vectors != 0, axis=1)
        # Infinite if the data have grown so much that their squares overflow.
        with np.errstate(over="ignore"):
            variance = np.where(is_determined, variance * scale**2, 0)
            variance = variance.astype(vectors.dtype)
        order = np.argsort(-variance, kind="stable")
        filled = _fill_zero_rows(vectors[order], np.random.RandomState(seed))
        return Components(
            components=_fix_signs(filled),
            variance=variance[order],
            mean=(np.asarray(estimates.mean) * scale).astype(vectors.dtype),
            tau=float(tau.value) if isinstance(tau, Constant) else tau,
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


def _begin(parameters: Parameters, first: np.ndarray) -> tuple[Subspace, float]:
    """Returns the estimates from the first samples, and the scale that they determine."""
    components, rule, tau, center = parameters
    scale = data_scale(first, center)
    with precision_of(first.dtype):
        samples = _scaled(first, scale, first.dtype)
        rule = _build_rule(rule, tau, samples, components, center)
        subspace = stream_pca(rule, samples, components, center=center)
    return subspace, scale


def _fill_zero_rows(vectors: np.ndarray, random: np.random.RandomState) -> np.ndarray:
    """Returns the vectors with random directions, orthogonal to the others, in place of
    zeros."""
    is_zero = ~np.any(vectors != 0, axis=1)
    if not is_zero.any():
        return vectors
    determined = vectors[~is_zero]
    drawn = random.standard_normal((np.sum(is_zero), vectors.shape[1]))
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
    if not isinstance(rule, type):
        as_rule(rule)
    if isinstance(tau, str):
        if tau != "auto":
            raise ValueError(f"tau = {tau!r} is not allowed: pass a number or 'auto'.")
        tau = automatic_tau(first, components, center)
    built = as_rule(rule(tau))
    require_instance("tau", built.tau, AbstractSchedule)
    return built
