"""Streaming PCA as scikit-learn has its estimators (the extra `sklearn`)."""

from numbers import Integral
from typing import Any, NamedTuple

import equinox as eqx
import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from .._check import require_instance, require_whole
from .._rule import AbstractRule, InoPCA
from .._schedule import AbstractSchedule, Constant
from . import Subspace, stream_pca
from .precision import from_pickle, precision_of, to_pickle
from .suitable import suitable_tau, suitable_unit


class StreamingPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """The leading principal components of a stream, a sample at a time.

    It forgets: old samples count for less and less, so it follows data that change. It
    needs the memory of a batch, however long the stream.

    **Parameters**

    - `n_components`: how many.
    - `rule`: a class of rules, which is given `tau`, or a whole rule such as `CCIPCA()`.
      That one, whose rate falls with the number of samples, is the more accurate on data
      that do not change.
    - `tau`: the rate, of which `tau / n_features` is the weight of a new sample; or a
      schedule. `"auto"` finds one in the first samples, at which the last component comes
      to rest near its truth, and says in `tau_` which.
    - `center`: whether to subtract the running mean.
    - `random_state`: of the directions that stand for components which no sample has shown,
      because there were too few or they have too few dimensions. Their variance is 0.

    **Attributes**

    `components_` (orthonormal, by falling variance), `explained_variance_` (of INO-PCA the
    norms of its vectors, of other rules a running mean of what the components capture),
    `mean_`, `tau_`, `n_samples_seen_`, `n_features_in_`, `feature_names_in_`.

    The unit of the data does not matter: samples are measured in one in which features have
    variance 1 on average. The first 64, or four for each component, tell it; they are held
    back until they are all there, so that the result does not depend, to the bit, on how a
    stream is cut into calls of `partial_fit`. Data in float64 are computed with in float64,
    whatever JAX's mode. Parameters other than `random_state` belong to a stream: after a
    change of one, `fit` begins another, and `partial_fit` raises a `ValueError`.
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
        """Forgets everything, and takes the rows of `X` in their order."""
        return self._take(X, fresh=True)

    def partial_fit(self, X: Any, y: Any = None) -> "StreamingPCA":
        """Goes on with the rows of `X`."""
        return self._take(X, fresh=not hasattr(self, "n_samples_seen_"))

    def _take(self, X: Any, fresh: bool) -> "StreamingPCA":
        if np.ma.is_masked(X):  # the check below forgets the mask
            raise ValueError("X has masked numbers, not allowed: remove or fill them.")
        X = validate_data(self, X, dtype=[np.float64, np.float32], reset=fresh)
        components = _require_components(self.n_components, X.shape[1])
        asked = _Parameters(components, self.rule, self.tau, bool(self.center))
        if fresh:
            seed = check_random_state(self.random_state).randint(2**31)
            seen, first, stream = 0, X[:0], None
        else:
            _require_unchanged(self._parameters, asked)
            seed, seen = self._seed, self.n_samples_seen_
            first, stream = self._first, self._stream
        seen += len(X)
        if stream is None:
            enough = max(64, 4 * components)
            room = enough - len(first)
            more = _measured(X[:room], 1.0, first.dtype)
            first, X = np.concatenate([first, more]), X[room:]
            begun = _begun(asked, first)
            if len(first) == enough:
                stream, first = begun, first[:0]
        if stream is not None:
            stream = stream.after(X)
        # Nothing has changed until here, so nothing is lost to an error.
        self._seed, self._first, self._stream, self._cache = seed, first, stream, {}
        self._parameters, self.n_samples_seen_ = asked, seen
        return self

    def _now(self) -> dict[str, Any]:
        """What is asked of a stream, computed when it is."""
        check_is_fitted(self)
        if not self._cache:
            stream = self._stream
            if stream is None:
                stream = _begun(self._parameters, self._first)
            self._cache.update(stream.found(np.random.RandomState(self._seed)))
        return self._cache

    @property
    def components_(self) -> np.ndarray:
        return self._now()["components"]

    @property
    def explained_variance_(self) -> np.ndarray:
        return self._now()["variance"]

    @property
    def mean_(self) -> np.ndarray:
        return self._now()["mean"]

    @property
    def tau_(self) -> Any:
        return self._now()["tau"]

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def transform(self, X: Any) -> np.ndarray:
        """The rows' coordinates along the components."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        return (X - self.mean_) @ self.components_.T

    def inverse_transform(self, X: Any) -> np.ndarray:
        """The points of the components' span that have these coordinates."""
        check_is_fitted(self)
        return np.asarray(X) @ self.components_ + self.mean_

    # `rule` and `tau` may have arrays of JAX's, as the state has.
    def __getstate__(self) -> dict[str, Any]:
        return to_pickle(super().__getstate__())

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(from_pickle(state))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class _Parameters(NamedTuple):
    """What a stream keeps from its first sample to its last."""

    n_components: int
    rule: Any
    tau: Any
    center: bool


def _require_unchanged(before: _Parameters, asked: _Parameters) -> None:
    shown = lambda value: eqx.tree_pformat(value, short_arrays=False, width=1000)
    for name, old, new in zip(before._fields, before, asked, strict=True):
        # A number may be spelt as 1 or 1.0, and a copy of a rule is the same rule.
        if not (eqx.tree_equal(old, new) or (np.isscalar(old) and old == new)):
            raise ValueError(
                f"{name} = {shown(new)} is not allowed: the stream began with "
                f"{shown(old)}. Set it back, or begin anew with fit."
            )


class _Stream(NamedTuple):
    """A stream of samples that are measured in a unit."""

    subspace: Subspace
    unit: float

    def after(self, X: np.ndarray) -> "_Stream":
        dtype, rows = self.subspace.pending.dtype, 1024
        pieces = (
            _measured(X[i : i + rows], self.unit, dtype) for i in range(0, len(X), rows)
        )
        old = self.subspace
        with precision_of(dtype):
            components = len(old.learned.vectors)
            new = stream_pca(old.rule, pieces, components, state=old, center=old.center)
        return _Stream(new, self.unit)

    def found(self, random: np.random.RandomState) -> dict[str, Any]:
        rule = self.subspace.rule
        with precision_of(self.subspace.pending.dtype):
            now = self.subspace.now()
            vectors, variance = np.asarray(now.components), now.eigenvalues(rule)
        shown = np.any(vectors != 0, axis=1)
        # Infinite if the data have grown beyond what their type has.
        with np.errstate(over="ignore"):
            variance = np.where(shown, np.asarray(variance, float) * self.unit**2, 0)
            variance = variance.astype(vectors.dtype)
        order = np.argsort(-variance, kind="stable")
        tau = rule.tau
        return dict(
            components=_directed(_filled(vectors[order], random)),
            variance=variance[order],
            mean=(np.asarray(now.mean) * self.unit).astype(vectors.dtype),
            tau=float(tau.value) if isinstance(tau, Constant) else tau,
        )


def _measured(X: np.ndarray, unit: float, dtype: Any) -> np.ndarray:
    """The samples in that unit and of that type."""
    try:
        with np.errstate(over="raise"):
            return (X / unit).astype(dtype)
    except FloatingPointError:
        raise ValueError(
            f"samples of up to {np.max(np.abs(X)):.3g} are not allowed in a stream that "
            f"began in {dtype} with a standard deviation of about {unit:.3g}: rescale or "
            "remove those that are far beyond the others."
        ) from None


def _begun(parameters: _Parameters, first: np.ndarray) -> _Stream:
    components, rule, tau, center = parameters
    unit = suitable_unit(first, center)
    with precision_of(first.dtype):
        samples = _measured(first, unit, first.dtype)
        rule = _chosen(rule, tau, samples, components, center)
        subspace = stream_pca(rule, samples, components, center=center)
    return _Stream(subspace, unit)


def _filled(vectors: np.ndarray, random: np.random.RandomState) -> np.ndarray:
    """With random directions, orthogonal to the others, in place of zeros."""
    missing = ~np.any(vectors != 0, axis=1)
    if not missing.any():
        return vectors
    shown = vectors[~missing]
    drawn = random.standard_normal((np.sum(missing), vectors.shape[1]))
    basis, _ = np.linalg.qr(np.concatenate([shown, drawn]).T)
    return np.concatenate([shown, basis.T[len(shown) :]]).astype(vectors.dtype)


def _directed(vectors: np.ndarray) -> np.ndarray:
    """Each with the sign that makes its largest entry positive: data do not tell it."""
    largest = np.take_along_axis(vectors, np.argmax(abs(vectors), axis=1)[:, None], axis=1)
    return vectors * np.where(largest < 0, -1, 1).astype(vectors.dtype)


def _chosen(
    rule: Any, tau: Any, first: np.ndarray, components: int, center: bool
) -> AbstractRule:
    if isinstance(rule, AbstractRule):
        if tau != "auto":
            raise ValueError(
                f"tau = {tau!r} is not allowed beside rule = {rule!r}, which has its own: "
                "pass the rule's class, or leave tau alone."
            )
        return rule
    if not isinstance(rule, type):
        require_instance("rule", rule, AbstractRule)
    if isinstance(tau, str):
        if tau != "auto":
            raise ValueError(f"tau = {tau!r} is not allowed: pass a number or 'auto'.")
        tau = suitable_tau(first, components, center)
    made = rule(tau)
    require_instance("rule", made, AbstractRule)
    require_instance("tau", made.tau, AbstractSchedule)
    return made


def _require_components(components: Any, p: int) -> int:
    remedy = "pass a whole number of components, at least 1"
    if not isinstance(components, Integral):
        raise ValueError(f"n_components = {components!r} is not allowed: {remedy}.")
    components = require_whole("n_components", components, 1, remedy)
    if components > p:
        raise ValueError(
            f"n_components = {components} is not allowed: samples with n_features = {p} "
            "have no more components than that."
        )
    return components
