"""Scores of two classes: how well they rank events, and whether probabilities are calibrated."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from streamlearn.quality.bins import Bins, equal_bins

if TYPE_CHECKING:
    from streamlearn.core.arrays import Array

CALIBRATION_BINS = 15  # of equal weight


class ScoredGroups(NamedTuple):
    """Groups of events with (nearly) the same score, ascending; each number is a sum of weights."""

    scores: Array
    positive: Array
    negative: Array
    predicted: Array  # positive events that the probabilities predict


class CalibrationBins(NamedTuple):
    """Bins of equal weight, ascending by probability."""

    weight: Array
    predicted: Array  # mean probability
    positive: Array  # share of positive events

    @property
    def error(self) -> float:
        """The expected calibration error: the mean distance of the two."""
        return float(np.average(np.abs(self.predicted - self.positive), weights=self.weight))


class Ranking:
    """Weights of events by score and class.

    >>> ranking = Ranking()
    >>> scores, positive = np.array([-1.0, 0.5, 0.2, 2.0]), np.array([False, False, True, True])
    >>> ranking.add(scores, positive, np.array([0.3, 0.6, 0.5, 0.9]), np.ones(4))
    >>> roc_area(ranking.groups()), calibration(ranking.groups(), 2).positive
    (0.75, array([0.5, 0.5]))
    """

    def __init__(self) -> None:
        self._bins = Bins(3)

    def add(self, scores: Array, positive: Array, probabilities: Array, weights: Array) -> None:
        """Add events; NaN probabilities leave the calibration unknown."""
        sides = np.where(positive, weights, 0.0), np.where(positive, 0.0, weights)
        self._bins.add(scores, *sides, probabilities * weights)

    def swap(self) -> None:
        """Swap the classes: scores change their sign."""
        self._bins.mirror()
        _, (positive, negative, predicted) = self._bins.used()
        self._bins.replace(np.stack([negative, positive, positive + negative - predicted]))

    def groups(self) -> ScoredGroups:
        """Return the events added so far."""
        scores, (positive, negative, predicted) = self._bins.used()
        return ScoredGroups(scores, positive, negative, predicted)


def groups_of(scores: Array, positive: Array, probabilities: Array, weights: Array) -> ScoredGroups:
    """Return events as groups."""
    found, place = np.unique(scores, return_inverse=True)
    sums = [
        np.bincount(place, amounts * weights, len(found))
        for amounts in (positive, ~positive, probabilities)
    ]
    return ScoredGroups(found, *sums)


def roc_curve(groups: ScoredGroups) -> tuple[Array, Array]:
    """Return false and true positive rates for thresholds from the highest to the lowest."""
    rates = [
        np.concatenate([[0.0], np.cumsum(side[::-1])]) / side.sum()
        for side in (groups.negative, groups.positive)
    ]
    return rates[0], rates[1]


def roc_area(groups: ScoredGroups) -> float | None:
    """Return the area under the ROC curve; None without events of both classes.

    Events of one group count as ties.
    """
    if not groups.positive.any() or not groups.negative.any():
        return None
    false, true = roc_curve(groups)
    return float(np.dot(np.diff(false), (true[1:] + true[:-1]) / 2.0))


def precision_recall(groups: ScoredGroups) -> tuple[Array, Array]:
    """Return recall and precision for thresholds from the highest to the lowest."""
    positive = np.cumsum(groups.positive[::-1])
    named = positive + np.cumsum(groups.negative[::-1])
    return positive / groups.positive.sum(), positive / named


def average_precision(groups: ScoredGroups) -> float | None:
    """Return the mean precision over recall; None without positive events."""
    if not groups.positive.any():
        return None
    recall, precision = precision_recall(groups)
    return float(np.dot(np.diff(recall, prepend=0.0), precision))


def calibration_ratio(groups: ScoredGroups) -> float | None:
    """Return predicted positives per positive, ideally 1; None without positive events."""
    positive = float(groups.positive.sum())
    return float(groups.predicted.sum()) / positive if positive else None


def calibration(groups: ScoredGroups, bins: int = CALIBRATION_BINS) -> CalibrationBins:
    """Return predicted and true shares of positives in bins of equal weight.

    A group is never divided, so that bins are fewer where many events have the same score.
    """
    weight = groups.positive + groups.negative
    place = equal_bins(weight, bins)
    sums = [
        np.bincount(place, column, bins) for column in (weight, groups.predicted, groups.positive)
    ]
    total, predicted, positive = (column[sums[0] > 0.0] for column in sums)
    return CalibrationBins(total, predicted / total, positive / total)
