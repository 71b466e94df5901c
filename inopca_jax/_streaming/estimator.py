"""`StreamingPCA`, a scikit-learn estimator (needs the extra `sklearn`)."""

from numbers import Integral
from typing import Any, NamedTuple

import equinox as eqx
import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from .._check import require_instance, require_whole
from .._module import from_pickle, show, to_pickle
from .._rule import AbstractRule, InoPCA
from .._schedule import AbstractSchedule, Constant
from .automatic import automatic_tau, data_scale
from .stream_pca import Subspace, precision_of, stream_pca


class StreamingPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """An estimator of the leading principal components of a stream of samples.

    With a constant rate old samples have less and less weight, so it follows data that
    change. The memory that it needs does not depend on the length of the stream.

    The scale of the data does not matter: samples are divided by a number, so that their
    features have variance 1 on average. It is computed from the first 64 samples, or four
    for each component if these are more. They are collected first, so that the bits of the
    result do not depend on how a stream is cut into calls of `partial_fit`. Data in float64
    are processed in float64, whatever JAX's mode. `partial_fit` raises a `ValueError` if a
    parameter other than `random_state` has changed; `fit` then starts a new stream.

    **Arguments:**

    - `n_components`: the number of components.
    - `rule`: a class of rules, which is constructed with `tau`, or a rule such as
        `CCIPCA()`. The rate of `CCIPCA` falls with the number of samples, so it is more
        accurate on data that do not change.
    - `tau`: the learning rate, where `tau / n_features` is the weight of a new sample, or a
        schedule. With `"auto"` it is chosen from the first samples, such that the last
        component settles near the true one; `tau_` has the value.
    - `center`: whether to subtract the running mean.
    - `random_state`: the seed of random directions. They stand for components that the
        samples do not determine, because there are too few samples or these span too few
        dimensions, and have variance 0.

    **Attributes:**

    - `components_`: shape `(n_components, n_features)`, orthonormal, by falling variance.
    - `explained_variance_`: shape `(n_components,)`. For INO-PCA the norms of its vectors,
        for other rules a running mean of the squares along the components.
    - `mean_`: shape `(n_features,)`.
    - `tau_`: the rate or schedule in use.
    - `n_samples_seen_`, `n_features_in_`, `feature_names_in_`.
    """

    def __init__(
        self,
        n_components: Any = 2,
        *,
        rule: Any = InoPCA,
        tau: Any = "auto",
        center: Any = True,
        random_state: Any = None,
    ):
        self.n_components = n_components
        self.rule = rule
        self.tau = tau
        self.center = center
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> "StreamingPCA":
        """Starts a new stream with the rows of `X`, in their order.

        **Arguments:**

        - `X`: shape `(n_samples, n_features)`.
        - `y`: ignored.

        **Returns:**

        The estimator itself.
        """
        return self._update(X, new=True)

    def partial_fit(self, X: Any, y: Any = None) -> "StreamingPCA":
        """Continues the stream with the rows of `X`, or starts one if there is none.

        **Arguments:**

        - `X`: shape `(n_samples, n_features)`.
        - `y`: ignored.

        **Returns:**

        The estimator itself.
        """
        return self._update(X, new=not hasattr(self, "n_samples_seen_"))

    def _update(self, X: Any, new: bool) -> "StreamingPCA":
        if np.ma.is_masked(X):  # `validate_data` would drop the mask
            raise ValueError("X has masked numbers, not allowed: remove or fill them.")
        X = validate_data(self, X, dtype=[np.float64, np.float32], reset=new)
        components = _require_components(self.n_components, X.shape[1])
        parameters = _Parameters(components, self.rule, self.tau, bool(self.center))
        if new:
            seed = check_random_state(self.random_state).randint(2**31)
            count, first, stream = 0, X[:0], None
        else:
            _require_unchanged(self._parameters, parameters)
            seed, count = self._seed, self.n_samples_seen_
            first, stream = self._first, self._stream
        count += len(X)
        if stream is None:
            needed = max(64, 4 * components)
            missing = needed - len(first)
            added = _scaled(X[:missing], 1.0, first.dtype)
            first, X = np.concatenate([first, added]), X[missing:]
            started = _start(parameters, first)  # always, so that errors are raised now
            if len(first) == needed:
                stream, first = started, first[:0]
        if stream is not None:
            stream = stream.updated(X)
        # Attributes are set at the end, so that an error leaves the estimator as it was.
        self._seed, self._first, self._stream, self._cache = seed, first, stream, {}
        self._parameters, self.n_samples_seen_ = parameters, count
        return self

    def _results(self) -> dict[str, Any]:
        """Returns what the fitted attributes have; computed at the first use."""
        check_is_fitted(self)
        if not self._cache:
            stream = self._stream
            if stream is None:
                stream = _start(self._parameters, self._first)
            self._cache.update(stream.results(np.random.RandomState(self._seed)))
        return self._cache

    @property
    def components_(self) -> np.ndarray:
        """The components, of shape `(n_components, n_features)`."""
        return self._results()["components"]

    @property
    def explained_variance_(self) -> np.ndarray:
        """The variances along the components, of shape `(n_components,)`."""
        return self._results()["variance"]

    @property
    def mean_(self) -> np.ndarray:
        """The mean of the samples, of shape `(n_features,)`; zero without `center`."""
        return self._results()["mean"]

    @property
    def tau_(self) -> Any:
        """The learning rate if it is constant, else the schedule."""
        return self._results()["tau"]

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def transform(self, X: Any) -> np.ndarray:
        """Returns the coordinates of the rows of `X` along the components.

        **Arguments:**

        - `X`: shape `(n_samples, n_features)`.

        **Returns:**

        Shape `(n_samples, n_components)`.
        """
        check_is_fitted(self)
        X = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        return (X - self.mean_) @ self.components_.T

    def inverse_transform(self, X: Any) -> np.ndarray:
        """Returns the points that have the coordinates `X` along the components.

        **Arguments:**

        - `X`: shape `(n_samples, n_components)`.

        **Returns:**

        Shape `(n_samples, n_features)`.
        """
        check_is_fitted(self)
        return np.asarray(X) @ self.components_ + self.mean_

    # `rule`, `tau` and the state of the stream may have JAX arrays.
    def __getstate__(self) -> dict[str, Any]:
        return to_pickle(super().__getstate__())

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(from_pickle(state))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class _Parameters(NamedTuple):
    """The parameters that may not change within a stream."""

    n_components: int
    rule: Any
    tau: Any
    center: bool


def _require_unchanged(before: _Parameters, now: _Parameters) -> None:
    shown = lambda value: show(value, width=None)
    for name, old, new in zip(before._fields, before, now, strict=True):
        # 1 and 1.0 are the same number, and a copy of a rule is the same rule.
        if not (eqx.tree_equal(old, new) or (np.isscalar(old) and old == new)):
            raise ValueError(
                f"{name} = {shown(new)} is not allowed: the stream began with "
                f"{shown(old)}. Set it back, or start a new stream with fit."
            )


class _Stream(NamedTuple):
    """The state of a stream of samples that are divided by `scale`."""

    subspace: Subspace
    scale: float

    def updated(self, X: np.ndarray) -> "_Stream":
        dtype, rows = self.subspace.pending.dtype, 1024
        pieces = (
            _scaled(X[i : i + rows], self.scale, dtype) for i in range(0, len(X), rows)
        )
        old = self.subspace
        with precision_of(dtype):
            components = len(old.estimates.vectors)
            new = stream_pca(old.rule, pieces, components, state=old, center=old.center)
        return _Stream(new, self.scale)

    def results(self, random: np.random.RandomState) -> dict[str, Any]:
        rule = self.subspace.rule
        with precision_of(self.subspace.pending.dtype):
            estimates = self.subspace.now()
            vectors = np.asarray(estimates.components)
            variance = np.asarray(estimates.eigenvalues(rule), float)
        is_determined = np.any(vectors != 0, axis=1)
        # Infinite if the data have grown so much that their squares overflow.
        with np.errstate(over="ignore"):
            variance = np.where(is_determined, variance * self.scale**2, 0)
            variance = variance.astype(vectors.dtype)
        order = np.argsort(-variance, kind="stable")
        tau = rule.tau
        return dict(
            components=_fix_signs(_fill_zero_rows(vectors[order], random)),
            variance=variance[order],
            mean=(np.asarray(estimates.mean) * self.scale).astype(vectors.dtype),
            tau=float(tau.value) if isinstance(tau, Constant) else tau,
        )


def _scaled(X: np.ndarray, scale: float, dtype: Any) -> np.ndarray:
    """Returns the samples divided by `scale`, in a type."""
    try:
        with np.errstate(over="raise"):
            return (X / scale).astype(dtype)
    except FloatingPointError:
        raise ValueError(
            f"samples of up to {np.max(np.abs(X)):.3g} are not allowed in a stream that "
            f"began in {dtype} with a standard deviation of about {scale:.3g}: rescale or "
            "remove those that are far beyond the others."
        ) from None


def _start(parameters: _Parameters, first: np.ndarray) -> _Stream:
    """Returns the stream after its first samples, which determine its scale and rate."""
    components, rule, tau, center = parameters
    scale = data_scale(first, center)
    with precision_of(first.dtype):
        samples = _scaled(first, scale, first.dtype)
        rule = _build_rule(rule, tau, samples, components, center)
        subspace = stream_pca(rule, samples, components, center=center)
    return _Stream(subspace, scale)


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
) -> AbstractRule:
    """Returns the rule of the parameters `rule` and `tau`, checked."""
    if isinstance(rule, AbstractRule):
        if tau != "auto":
            raise ValueError(
                f"tau = {tau!r} is not allowed with rule = {rule!r}, which has its own: "
                "pass the rule's class, or leave tau out."
            )
        return rule
    if not isinstance(rule, type):
        require_instance("rule", rule, AbstractRule)
    if isinstance(tau, str):
        if tau != "auto":
            raise ValueError(f"tau = {tau!r} is not allowed: pass a number or 'auto'.")
        tau = automatic_tau(first, components, center)
    built = rule(tau)
    require_instance("rule", built, AbstractRule)
    require_instance("tau", built.tau, AbstractSchedule)
    return built


def _require_components(components: Any, p: int) -> int:
    remedy = "pass a whole number of components, at least 1"
    if not isinstance(components, Integral):
        raise ValueError(f"n_components = {components!r} is not allowed: {remedy}.")
    components = require_whole("n_components", components, 1, remedy)
    if components > p:
        raise ValueError(
            f"n_components = {components} is not allowed: pass at most n_features = {p}."
        )
    return components
