"""What the classifier and the regressor share: validated arrays, passes over them, weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

if TYPE_CHECKING:
    from sklearn.utils import Tags

    from streamlearn.core.arrays import Array
    from streamlearn.estimators import LinearClassifier, LinearRegressor

SHUFFLED_ROWS = 4096  # are copied at a time, instead of the whole matrix


class StreamEstimator(BaseEstimator):
    """A scikit-learn estimator over an estimator of `streamlearn.estimators`."""

    model_: LinearClassifier | LinearRegressor
    n_features_in_: int

    passes: int
    shuffle: bool
    random_state: Any

    def _new_model(self, y: Array, seed: int) -> LinearClassifier | LinearRegressor:
        raise NotImplementedError

    def _checked_labels(self, y: Array) -> Array:
        return y

    def _declare_labels(self) -> None:
        """Tell the model all labels before it learns the first one."""

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Self:
        """Learn from scratch, in `passes` over the rows."""
        X, y, weights = self._checked(X, y, sample_weight, reset=True)
        if self.passes < 1:
            raise ValueError(f"passes must be at least 1, got {self.passes!r}")
        random = check_random_state(self.random_state)
        self.model_ = self._new_model(y, seed=int(random.randint(2**31)))
        self._declare_labels()
        n = X.shape[0]
        for _ in range(self.passes):
            if not self.shuffle:
                self.model_.learn_rows(X, y, weights)
                continue
            order = random.permutation(n)
            for start in range(0, n, SHUFFLED_ROWS):
                rows = order[start : start + SHUFFLED_ROWS]
                self.model_.learn_rows(X[rows], y[rows], None if weights is None else weights[rows])
        return self

    def _partial_fit(self, X: Any, y: Any, sample_weight: Any) -> Self:
        """Learn the rows once, in their order."""
        first = not hasattr(self, "model_")
        X, y, weights = self._checked(X, y, sample_weight, reset=first)
        if first:
            random = check_random_state(self.random_state)
            self.model_ = self._new_model(y, seed=int(random.randint(2**31)))
        self._declare_labels()
        self.model_.learn_rows(X, y, weights)
        return self

    def _checked(
        self, X: Any, y: Any, sample_weight: Any, *, reset: bool
    ) -> tuple[Any, Array, Array | None]:
        X, y = validate_data(
            self, X, y, reset=reset, accept_sparse="csr", dtype=np.float64, order="C"
        )
        weights = None if sample_weight is None else np.asarray(sample_weight, dtype=float)
        if weights is not None:
            weights = np.broadcast_to(weights, len(y)) if weights.ndim == 0 else weights
            if weights.shape != (len(y),):
                raise ValueError(
                    f"sample_weight must have one weight for each of {len(y)} rows, got shape "
                    f"{weights.shape}"
                )
            if not weights.any():
                raise ValueError("sample_weight: all weights are zero: give one above 0")
        return X, self._checked_labels(y), weights

    def _scores(self, X: Any) -> Array:
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, accept_sparse="csr", dtype=np.float64, order="C")
        return self.model_.score_rows(X)

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()  # type: ignore[no-untyped-call]
        tags.input_tags.sparse = True
        return tags
