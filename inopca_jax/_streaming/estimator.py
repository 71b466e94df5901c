"""`StreamingPCA`, a scikit-learn estimator (needs the extra `sklearn`)."""

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from .._check import require_whole
from .._module import from_pickle, to_pickle
from .._rule import InoPCA
from .scaled import Components, Parameters, ScaledStream


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

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> from inopca_jax import data
    >>> model = ino.StreamingPCA(n_components=2).fit(data.digits())
    >>> model.components_.shape, model.transform(data.digits()).shape
    ((2, 64), (1797, 2))
    >>> model = model.partial_fit(data.digits()[:100])
    >>> model.n_samples_seen_
    1897
    ```
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
        parameters = Parameters(components, self.rule, self.tau, bool(self.center))
        if new:
            seed = check_random_state(self.random_state).randint(2**31)
            stream = ScaledStream.empty(parameters, X.shape[1], X.dtype)
        else:
            seed, stream = self._seed, self._stream
            stream.parameters.require_same(parameters)
        stream = stream.updated(X)
        # Attributes are set at the end, so that an error leaves the estimator as it was.
        self._seed, self._stream, self._cache = seed, stream, {}
        self.n_samples_seen_ = stream.samples_seen
        return self

    def _results(self) -> Components:
        """Returns what the fitted attributes have; computed at the first use."""
        check_is_fitted(self)
        if not self._cache:
            self._cache["results"] = self._stream.results(self._seed)
        return self._cache["results"]

    @property
    def components_(self) -> np.ndarray:
        """The components, of shape `(n_components, n_features)`."""
        return self._results().components

    @property
    def explained_variance_(self) -> np.ndarray:
        """The variances along the components, of shape `(n_components,)`."""
        return self._results().variance

    @property
    def mean_(self) -> np.ndarray:
        """The mean of the samples, of shape `(n_features,)`; zero without `center`."""
        return self._results().mean

    @property
    def tau_(self) -> Any:
        """The learning rate if it is constant, else the schedule."""
        return self._results().tau

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
