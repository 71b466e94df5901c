"""`StreamingPCA`, a scikit-learn estimator (needs the extra `sklearn`)."""

from collections.abc import Iterator
from typing import Any

import equinox as eqx
import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from .._check import require_flag, require_whole
from .._module import from_pickle, to_pickle
from .scaled import Components, Parameters, ScaledStream
from .sketch import Sketch


class StreamingPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """An estimator of the leading principal components of a stream of samples.

    It takes the place of scikit-learn's `IncrementalPCA`. By default it is a `Sketch`: PCA
    of all samples, each used once, or with `memory` of the late ones. The paper's rules are
    there too. The memory that it needs does not depend on the length of the stream, and the
    bits of the result do not depend on how the stream is cut into calls of `partial_fit`.

    Data in float32 are processed in float32 and all others in float64, whatever JAX's mode.
    Sparse samples are made dense some at a time. `partial_fit` raises a `ValueError` if
    `n_components`, `rule`, `tau` or `center` has changed; `fit` then starts a new stream. A
    new `memory` holds for the samples to come, and `whiten` from the next `transform` on.

    **Arguments:**

    - `n_components`: the number of components; or a number in (0, 1), the share of the
        variance that they have together, from which their number follows at each use; or
        None, for as many as the first call has samples, at most `n_features`.
    - `memory`: after how many samples the weight of one has fallen to 1/e. The default,
        infinite, is for data that do not change.
    - `rule`: `Sketch` or an instance of it; or a class of rules, which is constructed with
        `tau`; or a rule such as `CCIPCA(2.0)`.
    - `tau`: the learning rate of a rule, or a schedule. With `"auto"` it is chosen from the
        first samples, such that the last component settles near the true one.
    - `center`: whether to subtract the running mean.
    - `whiten`: whether `transform` divides by the standard deviations.
    - `batch_size`: how many rows of a sparse matrix are made dense at a time. The result
        does not depend on it.
    - `random_state`: the seed of random directions. They stand for components that the
        samples do not determine, because there are too few samples or these span too few
        dimensions, and have variance 0.

    A rule needs data whose features have variance 1 on average: samples are divided by a
    number, computed from the first 64 samples, or four for each component if these are
    more. For INO-PCA `explained_variance_` has the norms of its vectors, for other rules a
    running mean of the squares along the components. A rule with a constant rate has a mean
    that forgets as its last component does.

    **Attributes:**

    - `components_`: shape `(n_components, n_features)`, orthonormal, by falling variance.
    - `explained_variance_`, `explained_variance_ratio_`, `singular_values_`: shape
        `(n_components,)`: the variances along the components, their shares of the variance
        of all features, and the roots of sums of squares over `n_samples_seen_` samples.
    - `noise_variance_`: the mean of the other eigenvalues of the covariance.
    - `mean_`, `var_`: shape `(n_features,)`.
    - `n_components_`: the number of components.
    - `tau_`: the rate or schedule in use; None for a sketch.
    - `memory_`: the number of samples after which the weight of one has fallen to 1/e: of
        the sketch, or of a rule's last component if its rate is constant.
    - `n_samples_seen_`, `n_features_in_`, `feature_names_in_`.

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> from inopca_jax import data
    >>> model = ino.StreamingPCA(n_components=2).fit(data.digits())
    >>> model.components_.shape, model.transform(data.digits()).shape
    ((2, 64), (1797, 2))
    >>> model = model.partial_fit(data.digits()[:100])
    >>> model.n_samples_seen_, model.memory_
    (1897, inf)
    ```
    """

    def __init__(
        self,
        n_components: Any = 2,
        *,
        memory: Any = np.inf,
        rule: Any = Sketch,
        tau: Any = "auto",
        center: Any = True,
        whiten: Any = False,
        batch_size: Any = None,
        random_state: Any = None,
    ):
        self.n_components = n_components
        self.memory = memory
        self.rule = rule
        self.tau = tau
        self.center = center
        self.whiten = whiten
        self.batch_size = batch_size
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> "StreamingPCA":
        """Starts a new stream with the rows of `X`, in their order.

        **Arguments:**

        - `X`: shape `(n_samples, n_features)`, which may be sparse.
        - `y`: ignored.

        **Returns:**

        The estimator itself.
        """
        return self._update(X, new=True)

    def partial_fit(self, X: Any, y: Any = None) -> "StreamingPCA":
        """Continues the stream with the rows of `X`, or starts one if there is none.

        **Arguments:**

        - `X`: shape `(n_samples, n_features)`, which may be sparse.
        - `y`: ignored.

        **Returns:**

        The estimator itself.
        """
        return self._update(X, new=not hasattr(self, "n_samples_seen_"))

    def _update(self, X: Any, new: bool) -> "StreamingPCA":
        X, rows = self._validated(X, reset=new), self._batch_rows()
        if new:
            seed = check_random_state(self.random_state).randint(2**31)
            shape = X.shape[1], X.dtype, X.shape[0]
            stream = ScaledStream.empty(self._parameters(), *shape)
        else:
            seed, stream = self._seed, self._stream
            stream.parameters.require_same(self._parameters())
            if not eqx.tree_equal(self.memory, stream.parameters.memory):
                stream = stream.with_memory(self.memory)
        for piece in _dense_pieces(X, rows):
            stream = stream.updated(piece)
        # Attributes are set at the end, so that an error leaves the estimator as it was.
        self._seed, self._stream, self._cache = seed, stream, {}
        self.n_samples_seen_ = stream.samples_seen
        return self

    def _parameters(self) -> Parameters:
        center = require_flag("center", self.center)
        return Parameters(self.n_components, self.rule, self.tau, center, self.memory)

    def _batch_rows(self) -> int:
        remedy = "pass a whole number of rows, at least 1, or None"
        given = self.batch_size is not None
        return require_whole("batch_size", self.batch_size, 1, remedy) if given else 64

    def _validated(self, X: Any, reset: bool) -> Any:
        """Returns samples as an array, or as a sparse matrix that is stored by rows."""
        if np.ma.is_masked(X):  # `validate_data` would drop the mask
            raise ValueError("X has masked numbers, not allowed: remove or fill them.")
        types = [np.float64, np.float32]
        return validate_data(self, X, dtype=types, accept_sparse="csr", reset=reset)

    def _results(self) -> Components:
        """Returns what the fitted attributes have; computed at the first use."""
        if not hasattr(self, "_cache"):
            check_is_fitted(self)
        if not self._cache:
            self._cache["results"] = self._selected(self._stream.results(self._seed))
        return self._cache["results"]

    def _selected(self, found: Components) -> Components:
        """Returns the first components, as many as have the share that was asked for."""
        share = self._stream.parameters.n_components
        if share is None or share >= 1:
            return found
        total = np.sum(found.feature_variance) * found.unbiased
        reached = np.cumsum(found.variance) >= share * total
        # All components have all of the variance, up to rounding.
        if not reached.any() and len(found.mean) > len(reached):
            raise ValueError(
                f"n_components = {share} is not allowed: {len(reached)} components, the "
                f"most for a share, have only {np.sum(found.variance) / total:.3g} of the "
                "variance. Pass a smaller share, or a whole number."
            )
        n = int(np.argmax(reached)) + 1 if reached.any() else len(reached)
        return found._replace(components=found.components[:n], variance=found.variance[:n])

    @property
    def components_(self) -> np.ndarray:
        """The components, of shape `(n_components, n_features)`."""
        return self._results().components

    @property
    def explained_variance_(self) -> np.ndarray:
        """The variances along the components, of shape `(n_components,)`."""
        return self._results().variance

    @property
    def explained_variance_ratio_(self) -> np.ndarray:
        """The shares of the components in the variance of all features."""
        found = self._results()
        total = np.sum(found.feature_variance) * found.unbiased
        return found.variance / (total if total > 0 else 1)

    @property
    def singular_values_(self) -> np.ndarray:
        """The roots of the sums of squares along the components, of as many samples as
        there were, with these variances."""
        found, n = self._results(), self._stream.samples_seen
        return np.sqrt(found.variance * max(n - int(self._stream.parameters.center), 0))

    @property
    def noise_variance_(self) -> float:
        """The mean of the covariance's eigenvalues other than those of the components. As
        many samples as there were have at most that many that are not 0."""
        found, n = self._results(), self._stream.samples_seen
        others = min(len(found.mean), n) - len(found.variance)
        if others <= 0:
            return 0.0
        rest = np.sum(found.feature_variance) * found.unbiased - np.sum(found.variance)
        return max(float(rest) / others, 0.0)

    @property
    def mean_(self) -> np.ndarray:
        """The mean of the samples, of shape `(n_features,)`; zero without `center`."""
        return self._results().mean

    @property
    def var_(self) -> np.ndarray:
        """The variances of the features in the samples, of shape `(n_features,)`; about
        zero without `center`."""
        return self._results().feature_variance

    @property
    def n_components_(self) -> int:
        """The number of components."""
        return len(self._results().variance)

    @property
    def tau_(self) -> Any:
        """The learning rate if it is constant, else the schedule; None for a sketch."""
        return self._results().tau

    @property
    def memory_(self) -> float:
        """The number of samples after which the weight of one has fallen to 1/e."""
        return self._results().memory

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def get_covariance(self) -> np.ndarray:
        """Returns the covariance of the model: the variances along the components, and
        `noise_variance_` in all other directions.

        **Returns:**

        Shape `(n_features, n_features)`.
        """
        return self._quadratic_form(*self._model_variances())

    def get_precision(self) -> np.ndarray:
        """Returns the inverse of `get_covariance()`.

        **Returns:**

        Shape `(n_features, n_features)`.
        """
        variance, noise = self._model_variances()
        if min(np.min(variance), noise) <= 0:
            raise ValueError(
                "The covariance of the model has no inverse: a component or the noise has "
                "variance 0. Pass more samples than features, or fewer components."
            )
        return self._quadratic_form(1 / variance, 1 / noise)

    def _model_variances(self) -> tuple[np.ndarray, float]:
        variance, noise = self.explained_variance_, self.noise_variance_
        if len(variance) == len(self.mean_):  # there are no other directions
            return variance, float(np.min(variance))
        return np.maximum(variance, noise), noise

    def _quadratic_form(self, along: np.ndarray, others: float) -> np.ndarray:
        """Returns the matrix with the eigenvalues `along` the components and `others`."""
        components = self.components_
        matrix = (components.T * (along - others)) @ components
        matrix[np.diag_indices_from(matrix)] += others
        return matrix

    def transform(self, X: Any) -> np.ndarray:
        """Returns the coordinates of the rows of `X` along the components.

        **Arguments:**

        - `X`: shape `(n_samples, n_features)`, which may be sparse.

        **Returns:**

        Shape `(n_samples, n_components)`.
        """
        found = self._results()
        X = self._validated(X, reset=False)
        along = found.components.T
        if sparse.issparse(X):
            coordinates = X @ along - found.mean @ along
        else:
            coordinates = (X - found.mean) @ along
        if not require_flag("whiten", self.whiten):
            return coordinates
        # A component that the samples do not determine has coordinates 0.
        deviations = np.sqrt(found.variance)
        return coordinates / np.where(deviations > 0, deviations, np.inf)

    def inverse_transform(self, X: Any) -> np.ndarray:
        """Returns the points that have the coordinates `X` along the components.

        **Arguments:**

        - `X`: shape `(n_samples, n_components)`.

        **Returns:**

        Shape `(n_samples, n_features)`.
        """
        found = self._results()
        types: Any = [np.float64, np.float32]
        X = check_array(X, input_name="X", dtype=types)
        if require_flag("whiten", self.whiten):
            X = X * np.sqrt(found.variance)
        return X @ found.components + found.mean

    # `rule`, `tau` and the state of the stream may have JAX arrays.
    def __getstate__(self) -> dict[str, Any]:
        return to_pickle(super().__getstate__())

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(from_pickle(state))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.input_tags.sparse = True
        return tags


def _dense_pieces(X: Any, rows: int) -> Iterator[np.ndarray]:
    """Yields samples as arrays: all at once, or a few rows of a sparse matrix at a time."""
    if not sparse.issparse(X):
        yield X
        return
    for begin in range(0, X.shape[0], rows):
        yield X[begin : begin + rows].toarray()
