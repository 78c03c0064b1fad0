"""How well scores separate and are calibrated, over the last labeled events."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Marks = NDArray[np.bool_]

BINS = 10
MOST_BATCHES = 1000  # that wait to be looked at


class Recent:
    """The last scores and labels of a learner of two classes.

    A batch is only kept when it comes; labels are made of it when somebody looks, once a second.

    >>> recent = Recent(100)
    >>> scores, error = np.array([-1.0, 0.5, 0.2, 2.0]), np.array([0.0, 1.0, 0.0, 0.0])
    >>> recent.add(scores, error, np.array([True, True, True, True]), 4)
    >>> recent.window()[1], roc_area(*recent.window())
    (array([False, False,  True,  True]), 0.75)
    """

    def __init__(self, events: int) -> None:
        self.events = events
        self._scores, self._positive = np.zeros(0), np.zeros(0, bool)
        self._fresh: deque[tuple[int, Array, Array, Marks]] = deque()
        self._waiting = 0  # events with a label in those

    def add(self, scores: Array, error: Array, learned: Marks, count: int) -> None:
        """The next batch: its scores, which of them were errors, which `count` have a label."""
        if scores.ndim > 1 and scores.shape[1] > 1:
            return  # of several outputs
        self._fresh.append((count, scores.reshape(-1), error, learned))
        self._waiting += count
        while self._waiting - self._fresh[0][0] >= self.events:
            self._waiting -= self._fresh.popleft()[0]  # too old to be looked at
        if len(self._fresh) > MOST_BATCHES:
            self.window()

    def window(self) -> tuple[Array, Marks]:
        """The last scores, and whether the label of each was the positive one."""
        if self._fresh:
            batches, self._fresh, self._waiting = self._fresh, deque(), 0
            _, *columns = zip(*batches, strict=True)
            scores, error, learned = map(np.concatenate, columns)
            scores, error = scores[learned][-self.events :], error[learned][-self.events :]
            # the label is the one predicted, by the score's sign, unless that was an error
            self._keep(scores, (scores > 0.0) != (error > 0.0))
        return self._scores, self._positive

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        scores, positive = self.window()
        return {"scores": scores.copy(), "positive": positive.astype(np.uint8)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from there."""
        self._scores, self._positive = np.zeros(0), np.zeros(0, bool)
        self._keep(state["scores"][-self.events :], state["positive"][-self.events :] > 0)

    def _keep(self, scores: Array, positive: Marks) -> None:
        before = self.events - len(scores)  # so many of the past stay
        past = slice(max(len(self._scores) - before, 0), None)
        self._scores = np.concatenate([self._scores[past], scores])
        self._positive = np.concatenate([self._positive[past], positive])


def roc_area(scores: Array, positive: Marks) -> float | None:
    """How likely a positive event has the higher score; None without one of each."""
    above, below = scores[positive], np.sort(scores[~positive])
    if not len(above) or not len(below):
        return None
    ranks = np.searchsorted(below, above, "left") + np.searchsorted(below, above, "right")
    return float(ranks.sum() / (2.0 * len(above) * len(below)))


def calibration(probabilities: Array, positive: Marks) -> tuple[float | None, float | None]:
    """Mean probability over the share of positives, and the mean distance of both in ten bins.

    >>> calibration(np.array([0.25, 0.25, 0.25, 0.25]), np.array([True, False, False, False]))
    (1.0, 0.0)
    """
    n = len(positive)
    if not n:
        return None, None
    share = float(positive.mean())
    bins = np.minimum((probabilities * BINS).astype(np.intp), BINS - 1)
    expected = np.bincount(bins, probabilities, BINS)
    seen = np.bincount(bins, positive, BINS)
    distance = float(np.abs(expected - seen).sum() / n)
    return (float(probabilities.mean()) / share if share else None), distance
