"""How well scores separate and are calibrated, over the last labelled events."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Marks = NDArray[np.bool_]

BINS = 10


class Recent:
    """The last scores and labels of a learner of two classes.

    >>> recent = Recent(100)
    >>> recent.add(np.array([-1.0, 0.5, 0.2, 2.0]), np.array([False, False, True, True]))
    >>> recent.roc_area()
    0.75
    """

    def __init__(self, window: int) -> None:
        self._scores = np.zeros(window)
        self._positive = np.zeros(window, bool)
        self._count = 0

    def __len__(self) -> int:
        return min(self._count, len(self._scores))

    def add(self, scores: Array, positive: Marks) -> None:
        """The next events, in their order."""
        window = len(self._scores)
        scores, positive = scores[-window:], positive[-window:]
        at = self._count % window
        self._count += len(scores)
        head = min(len(scores), window - at)
        for kept, new in ((self._scores, scores), (self._positive, positive)):
            kept[at : at + head] = new[:head]
            kept[: len(new) - head] = new[head:]

    @property
    def scores(self) -> Array:
        """Those kept, in no order."""
        return self._scores[: len(self)]

    @property
    def positive(self) -> Marks:
        """Whether the label of each was the positive one."""
        return self._positive[: len(self)]

    def roc_area(self) -> float | None:
        """How likely a positive event has the higher score; None without one of each."""
        above, below = self.scores[self.positive], np.sort(self.scores[~self.positive])
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
