"""StreamRegressor: LinearRegressor as a scikit-learn estimator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from streamlearn.estimators import LinearRegressor
from streamlearn.sklearn.estimator import StreamEstimator

if TYPE_CHECKING:
    from streamlearn.core.arrays import Array
    from streamlearn.losses import Loss
    from streamlearn.penalties import Penalty
    from streamlearn.rules import Rule


class StreamRegressor(RegressorMixin, StreamEstimator):
    """A linear regressor that learns in one pass, without a step size to tune.

    Parameters
    ----------
    rule, loss, penalty
        As in `LinearRegressor`; None: the mixture of rules, squared loss, no penalty.
    fit_intercept, average, batch
        As in `LinearRegressor`.
    passes
        How often `fit` learns each row.
    shuffle
        Whether `fit` draws a new order of the rows for each pass.
    random_state
        For that order.

    Attributes
    ----------
    model_ : LinearRegressor
        The model, which can be saved. The feature of column j is named j.
    coef_ : array of shape (n_features_in_,)
    intercept_ : float

    Examples
    --------
    >>> import numpy as np
    >>> import streamlearn as sl
    >>> X = np.random.default_rng(0).normal(size=(1000, 2))
    >>> regressor = sl.sklearn.StreamRegressor(random_state=0).fit(X, X @ [3.0, -1.0] + 2.0)
    >>> regressor.coef_.round(1), round(regressor.intercept_, 1)
    (array([ 3., -1.]), 2.0)
    """

    model_: LinearRegressor

    def __init__(
        self,
        rule: Rule | None = None,
        loss: Loss | None = None,
        penalty: Penalty | None = None,
        *,
        fit_intercept: bool | str = True,
        average: str = "last",
        batch: int = 1,
        passes: int = 1,
        shuffle: bool = True,
        random_state: Any = None,
    ) -> None:
        self.rule = rule
        self.loss = loss
        self.penalty = penalty
        self.fit_intercept = fit_intercept
        self.average = average
        self.batch = batch
        self.passes = passes
        self.shuffle = shuffle
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the rows from scratch."""
        return self._fit(X, y, sample_weight)

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the rows once, in their order, from where the last call ended."""
        return self._partial_fit(X, y, sample_weight)

    def _new_model(self, y: Array, seed: int) -> LinearRegressor:  # noqa: ARG002 - as the classifier's
        return LinearRegressor(
            self.rule,
            self.loss,
            self.penalty,
            fit_intercept=self.fit_intercept,
            average=self.average,
            batch=self.batch,
            seed=seed,
        )

    def predict(self, X: Any) -> Array:
        """Return the prediction for each row."""
        scores = self._scores(X)
        return np.array(self.model_.predictions(scores))

    @property
    def coef_(self) -> Array:
        """The weights."""
        check_is_fitted(self)
        return self.model_.coef(self.n_features_in_)

    @property
    def intercept_(self) -> float:
        """The intercept."""
        check_is_fitted(self)
        return float(self.model_.intercept)
