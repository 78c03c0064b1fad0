"""The quality of a model's predictions over events, in one pass."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from streamlearn.core.progressive import WeightedMean
from streamlearn.estimators.classifier import LinearClassifier
from streamlearn.losses import Logistic, Loss, Softmax
from streamlearn.quality.bins import Bins, equal_bins
from streamlearn.quality.constant import constant_loss, entropy
from streamlearn.quality.ranking import (
    CALIBRATION_BINS,
    Ranking,
    calibration,
    calibration_ratio,
    roc_area,
)

if TYPE_CHECKING:
    from streamlearn.core.arrays import Array
    from streamlearn.engine.events import Events
    from streamlearn.estimators.linear import Linear
    from streamlearn.estimators.regressor import LinearRegressor
    from streamlearn.estimators.scored_events import ScoredEvents


class Quality:
    """The quality of a model over the events added.

    Numbers of "the constant" and "the mean" are those of the best constant prediction, known only
    afterwards.
    """

    def __init__(self, model: Linear) -> None:
        self.means = {name: WeightedMean() for name in model.score_measures}

    @property
    def events(self) -> int:
        """The number of events added."""
        return self.means["loss"].count

    @property
    def weight(self) -> float:
        """Their weight."""
        return self.means["loss"].weight

    @np.errstate(over="ignore")  # of squares
    def add(self, events: Events, scored: ScoredEvents) -> None:
        """Add decoded events that were scored with all of the model's `score_measures`."""
        rows = np.flatnonzero(~np.isnan(scored.measures["loss"]))
        if not len(rows):
            return
        weights = events.weights[rows]
        self._add(events, rows, weights, scored)
        for name, mean in self.means.items():
            mean.add(scored.measures[name][rows], weights)

    def _add(self, events: Events, rows: Array, weights: Array, scored: ScoredEvents) -> None:
        """Add what the means do not hold of these rows."""
        raise NotImplementedError

    @np.errstate(over="ignore", invalid="ignore")
    def facts(self) -> dict[str, float | None]:
        """Return the numbers by name; None where one is undefined, or too large for a float."""
        if not self.events:
            return {"loss": None}
        found = self._facts({name: mean.mean for name, mean in self.means.items()})
        return {
            name: value if value is not None and math.isfinite(value) else None
            for name, value in found.items()
        }

    def _facts(self, means: dict[str, float]) -> dict[str, float | None]:
        """Return the numbers by name, given the means."""
        raise NotImplementedError


class ClassifierQuality(Quality):
    """Loss, error rate, ROC area and calibration of a classifier.

    ROC area and calibration are those of two classes, and calibration needs a loss with
    probabilities.
    """

    def __init__(self, model: LinearClassifier) -> None:
        super().__init__(model)
        self.model = model
        self.ranking = Ranking()
        self.confusion = np.zeros((0, 0))  # weights by true and predicted label
        self._sign = 0.0

    @property
    def binary(self) -> bool:
        """Whether scores are those of two classes, in one output."""
        return self.model.engine.learner.outputs == 1

    @property
    def has_probability(self) -> bool:
        """Whether the loss defines probabilities."""
        return self.model.objective.loss.has_probability

    @property
    def loss_is_log_loss(self) -> bool:
        """Whether the loss is the log-loss of the probabilities."""
        loss = self.model.objective.loss
        return isinstance(loss, Softmax) or (isinstance(loss, Logistic) and self.binary)

    def _add(self, events: Events, rows: Array, weights: Array, scored: ScoredEvents) -> None:
        codes, scores = self.model.codes_of(events)[rows], scored.scores[rows]
        wrong = scored.measures["error"][rows] > 0.0
        if self.binary:
            positive = codes > 0.0
            self._rank(scores, positive, weights)
            self._confuse(positive.astype(np.intp), (positive != wrong).astype(np.intp), weights)
            return
        true = codes.astype(np.intp)
        predicted = true.copy()
        predicted[wrong] = next_best(scores[wrong], true[wrong], scored.known_labels[rows][wrong])
        self._confuse(true, predicted, weights)

    def _rank(self, scores: Array, positive: Array, weights: Array) -> None:
        sign = self.model.sign
        if sign * self._sign < 0.0:  # the second label turned out to be the negative one
            self.ranking.swap()
            self.confusion = self.confusion[::-1, ::-1].copy()
        self._sign = sign
        shares = np.full(len(scores), np.nan)
        loss = self.model.objective.loss
        if isinstance(loss, Loss) and loss.has_probability:
            shares = np.asarray(loss.probability(np.ascontiguousarray(scores)))
        self.ranking.add(scores, positive, shares, weights)

    def _confuse(self, true: Array, predicted: Array, weights: Array) -> None:
        more = max(len(self.model.labels), 2) - len(self.confusion)
        if more:
            self.confusion = np.pad(self.confusion, ((0, more), (0, more)))
        np.add.at(self.confusion, (true, predicted), weights)

    def _facts(self, means: dict[str, float]) -> dict[str, float | None]:
        weights = self.confusion.sum(axis=1)
        found: dict[str, float | None] = {
            "loss": means["loss"],
            "constant's loss": self._constant_loss(weights),
        }
        if not self.loss_is_log_loss:
            found |= {"log loss": means["log_loss"], "constant's log loss": entropy(weights)}
        if self.binary:
            groups = self.ranking.groups()
            found["ROC area"] = roc_area(groups)
            if self.has_probability:
                found["calibration ratio"] = calibration_ratio(groups)
                found["calibration error"] = calibration(groups).error
        return found | {
            "error rate": means["error"],
            "constant's error rate": float(1.0 - weights.max() / weights.sum()),
        }

    def _constant_loss(self, weights: Array) -> float | None:
        """Return the loss of the best constant scores; None if it is not known."""
        loss = self.model.objective.loss
        if self.loss_is_log_loss:
            return entropy(weights)
        if not isinstance(loss, Loss):
            return None
        sides = np.array([-1.0, 1.0])
        if self.binary:
            return constant_loss(loss, sides, weights)
        rest = weights.sum() - weights  # the losses of one class versus the rest are added
        pairs = zip(rest, weights, strict=True)
        return sum(constant_loss(loss, sides, np.array(pair)) for pair in pairs)


def next_best(scores: Array, true: Array, known: Array) -> Array:
    """Return the label predicted instead of the true one, of those `known` (0: of all)."""
    places = np.arange(scores.shape[1])
    out = (places == true[:, None]) | ((known > 0)[:, None] & (places >= known[:, None]))
    return np.asarray(np.where(out, -np.inf, scores).argmax(axis=1))


class RegressorQuality(Quality):
    """Loss, absolute and squared error of a regressor, and those of the mean label."""

    def __init__(self, model: LinearRegressor) -> None:
        super().__init__(model)
        self.model = model
        self._predictions = Bins(3)  # weight, and weight times prediction and label
        self._residuals = Bins(1)  # weight
        self.labels = Bins(2)  # weight, and weight times label
        self._origin = 0.0  # the first label: sums relative to it do not cancel
        self._sums = np.zeros(2)  # of weight times label, and times its square

    def _add(self, events: Events, rows: Array, weights: Array, scored: ScoredEvents) -> None:
        labels = self.model.codes_of(events)[rows]
        if not self.events:
            self._origin = float(labels[0])
        moved = labels - self._origin
        self.labels.add(labels, weights, weights * labels)
        self._sums += np.dot(weights, moved), np.dot(weights, moved * moved)
        predicted = np.asarray(self.model.predictions(scored.scores[rows]))
        self._predictions.add(predicted, weights, weights * predicted, weights * labels)
        self._residuals.add(predicted - labels, weights)

    @property
    def mean_and_spread(self) -> tuple[float, float]:
        """The mean of the labels, and their standard deviation."""
        mean, square = (self._sums / self.weight).tolist()
        return self._origin + mean, math.sqrt(max(square - mean * mean, 0.0))

    def by_prediction(self) -> tuple[Array, Array, Array]:
        """Return weight, mean prediction and mean label in bins of equal weight."""
        _, (weights, predicted, labels) = self._predictions.used()
        place = equal_bins(weights, CALIBRATION_BINS)
        sums = [np.bincount(place, column) for column in (weights, predicted, labels)]
        weight, *others = (column[sums[0] > 0.0] for column in sums)
        return weight, others[0] / weight, others[1] / weight

    def residuals(self) -> tuple[Array, Array]:
        """Return the differences of predictions and labels, ascending, and their weights."""
        differences, (weights,) = self._residuals.used()
        return differences, weights

    def _facts(self, means: dict[str, float]) -> dict[str, float | None]:
        _, (weights, sums) = self.labels.used()
        labels = sums / weights
        mean, spread = self.mean_and_spread
        variance = spread * spread
        distances = np.abs(labels - mean)
        loss = self.model.objective.loss
        best = constant_loss(loss, labels, weights) if isinstance(loss, Loss) else None
        return {
            "loss": means["loss"],
            "constant's loss": best,
            "MAE": means["absolute"],
            "mean's MAE": float(np.average(distances, weights=weights)),
            "RMSE": math.sqrt(means["squared"]),
            "mean's RMSE": spread,
            "R2": 1.0 - means["squared"] / variance if variance else None,
        }


def quality_of(model: LinearClassifier | LinearRegressor) -> Quality:
    """Return what measures the quality of a model.

    >>> import streamlearn as sl
    >>> type(quality_of(sl.LinearClassifier())).__name__
    'ClassifierQuality'
    """
    if isinstance(model, LinearClassifier):
        return ClassifierQuality(model)
    return RegressorQuality(model)
