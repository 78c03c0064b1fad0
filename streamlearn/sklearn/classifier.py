"""StreamClassifier: LinearClassifier as a scikit-learn estimator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from streamlearn.estimators import LinearClassifier
from streamlearn.sklearn.estimator import StreamEstimator

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from streamlearn.core.arrays import Array
    from streamlearn.losses import Loss, VectorLoss
    from streamlearn.penalties import Penalty
    from streamlearn.rules import Rule


def _has_probability(classifier: StreamClassifier) -> bool:
    if classifier.loss is None or classifier.loss.has_probability:
        return True
    raise AttributeError(f"{classifier.loss!r} defines no probability")


class StreamClassifier(ClassifierMixin, StreamEstimator):
    """A linear classifier that learns in one pass, without a step size to tune.

    Parameters
    ----------
    rule, loss, penalty
        As in `LinearClassifier`; None: the mixture of rules, logistic loss, no penalty.
    fit_intercept, average, batch
        As in `LinearClassifier`.
    class_weight
        A factor on the weight of the rows of each class, or "balanced".
    passes
        How often `fit` learns each row.
    shuffle
        Whether `fit` draws a new order of the rows for each pass.
    random_state
        For that order.

    Attributes
    ----------
    model_ : LinearClassifier
        The model, which can be saved. The feature of column j is named j.
    classes_ : array of the labels, sorted
    coef_, intercept_ : arrays
        Of shape (1, n_features_in_) and (1,) with two classes, else with a row for each class.

    Examples
    --------
    >>> import numpy as np
    >>> import streamlearn as sl
    >>> X = np.random.default_rng(0).normal(size=(1000, 3))
    >>> y = np.where(X[:, 0] > X[:, 1], "spam", "ham")
    >>> classifier = sl.sklearn.StreamClassifier(random_state=0).fit(X, y)
    >>> classifier.predict([[2.0, -1.0, 0.0]])
    array(['spam'], dtype='<U4')
    >>> classifier.coef_.shape
    (1, 3)
    """

    model_: LinearClassifier
    classes_: Array

    def __init__(
        self,
        rule: Rule | None = None,
        loss: Loss | VectorLoss | None = None,
        penalty: Penalty | None = None,
        *,
        fit_intercept: bool | str = True,
        class_weight: Mapping[Hashable, float] | Literal["balanced"] | None = None,
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
        self.class_weight = class_weight
        self.average = average
        self.batch = batch
        self.passes = passes
        self.shuffle = shuffle
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the rows from scratch."""
        self.classes_ = np.empty(0)
        return self._fit(X, y, sample_weight)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn the rows once, in their order, from where the last call ended.

        New labels may appear at any time; `classes` are those that may, which `classes_` then has
        from the start.
        """
        if self.class_weight == "balanced":
            raise ValueError(
                'class_weight="balanced" needs all labels at once; use fit, or give a factor for '
                "each class"
            )
        if not hasattr(self, "classes_"):
            self.classes_ = np.empty(0) if classes is None else np.unique(classes)
        return self._partial_fit(X, y, sample_weight)

    def _checked_labels(self, y: Array) -> Array:
        check_classification_targets(y)
        labels = np.unique(y)
        self.classes_ = np.union1d(self.classes_, labels) if len(self.classes_) else labels
        return y

    def _declare_labels(self) -> None:
        self.model_.know_labels(self.classes_.tolist())

    def _new_model(self, y: Array, seed: int) -> LinearClassifier:
        factors = self.class_weight
        if factors == "balanced":
            values = compute_class_weight("balanced", classes=self.classes_, y=y)
            factors = dict(zip(self.classes_.tolist(), values.tolist(), strict=True))
        return LinearClassifier(
            self.rule,
            self.loss,
            self.penalty,
            fit_intercept=self.fit_intercept,
            class_weight=factors,
            average=self.average,
            batch=self.batch,
            seed=seed,
        )

    def decision_function(self, X: Any) -> Array:
        """Return the score of the second of two classes, or of each class."""
        return self._by_class(np.atleast_2d(self._scores(X).T)).T

    def predict(self, X: Any) -> Array:
        """Return the class with the largest score."""
        scores = self.decision_function(X)
        if len(self.classes_) == 1:
            return np.repeat(self.classes_, len(scores))
        best = scores > 0.0 if scores.ndim == 1 else scores.argmax(axis=1)
        labels: Array = self.classes_[best.astype(int)]
        return labels

    @available_if(_has_probability)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each class."""
        scores = self._scores(X)
        if len(self.classes_) == 1:
            return np.ones((len(scores), 1))
        shares = np.empty((len(scores), len(self.classes_)))
        shares[:, self._places()] = self.model_.probabilities(scores)
        return shares

    @property
    def coef_(self) -> Array:
        """The weights."""
        check_is_fitted(self)
        weights = np.atleast_2d(self.model_.coef(self.n_features_in_))
        return np.atleast_2d(self._by_class(weights))

    @property
    def intercept_(self) -> Array:
        """The intercepts."""
        check_is_fitted(self)
        intercept = self.model_.intercept
        if isinstance(intercept, dict):
            intercept = [intercept.get(label, 0.0) for label in self.model_.outputs]
        return np.atleast_1d(self._by_class(np.atleast_1d(intercept)))

    def _places(self) -> list[int]:
        """Return the place in `classes_` of each label of the model."""
        places = {label: place for place, label in enumerate(self.classes_.tolist())}
        return [places[label] for label in self.model_.labels]

    def _by_class(self, values: Array) -> Array:
        """Return the values by class; for two classes, the second's minus the first's."""
        if len(values) == 1:  # two classes share an output
            values = np.concatenate([-values / 2, values / 2])
        known = self._places()
        rows = np.empty((len(self.classes_), *values.shape[1:]))
        rows[known] = values[: len(known)]
        if len(rows) == 2:
            difference: Array = rows[1] - rows[0]
            return difference
        return rows
