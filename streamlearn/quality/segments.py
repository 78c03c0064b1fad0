"""The loss over a stream of unknown length, as a bounded number of equal segments."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from streamlearn.core.arrays import Array

MOST = 128  # segments; then every two become one


class LossSegments:
    """The mean loss of consecutive segments.

    >>> segments = LossSegments()
    >>> segments.add(np.arange(200.0), np.ones(200))
    >>> ends, means = segments.means()
    >>> len(ends), ends[:2], means[:2]
    (100, array([2, 4]), array([0.5, 2.5]))
    """

    def __init__(self) -> None:
        self.size = 1  # events in a segment
        self.events = 0
        self._sums = np.zeros((2, MOST))  # of weighted losses and of weights

    def add(self, losses: Array, weights: Array) -> None:
        """Add events, NaN for those that do not count."""
        counted = ~np.isnan(losses)
        losses, weights = losses[counted], weights[counted]
        while self.events + len(losses) > MOST * self.size:
            halves = self._sums.reshape(2, MOST // 2, 2).sum(axis=2)
            self._sums = np.pad(halves, ((0, 0), (0, MOST // 2)))
            self.size *= 2
        places = (self.events + np.arange(len(losses))) // self.size
        np.add.at(self._sums[0], places, losses * weights)
        np.add.at(self._sums[1], places, weights)
        self.events += len(losses)

    def means(self) -> tuple[Array, Array]:
        """Return the number of events at the end of each segment, and its mean loss.

        A last segment that is not half full is part of the one before it: its mean would be noise.
        """
        used = np.flatnonzero(self._sums[1])
        ends, sums = np.minimum((used + 1) * self.size, self.events), self._sums[:, used]
        if len(used) > 1 and 2 * (self.events - used[-1] * self.size) < self.size:
            sums[:, -2] += sums[:, -1]
            ends, sums = np.append(ends[:-2], ends[-1]), sums[:, :-1]
        return ends, sums[0] / sums[1]
