"""Progressive validation: the mean loss before learning, at growing intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streamlearn.estimators.frames import Array


@dataclass(frozen=True, slots=True)
class Point:
    """A point of the curve."""

    events: int  # learned so far
    weight: float  # their total weight
    loss: float  # their mean loss
    since: float  # the mean loss since the last point
    row: int  # the last event, in its batch


class ProgressiveCurve:
    """The mean loss over a stream, with points at 1, 2, 4, 8, ... events.

    Parameters
    ----------
    interval
        From one point to the next: a factor (float, as in Vowpal Wabbit), or a number of events
        (int).

    Examples
    --------
    >>> curve = ProgressiveCurve()
    >>> ones = np.ones(5)
    >>> [(p.events, p.loss) for p in curve.add(np.array([1.0, 0.0, np.nan, 0.5, 0.5]), ones)]
    [(1, 1.0), (2, 0.5), (4, 0.5)]
    >>> curve.end().since
    0.5
    """

    def __init__(self, interval: float = 2.0) -> None:
        self.interval = interval
        self.events = 0
        self.weight = self.total = 0.0
        self._next = interval if isinstance(interval, int) else 1
        self._last = (0, 0.0, 0.0)  # events, weight and total at the last point

    def add(self, losses: Array, weights: Array) -> Iterator[Point]:
        """Add the losses of events, NaN for those not learned; yield the points reached."""
        rows = np.flatnonzero(~np.isnan(losses))
        if not len(rows):
            return
        if self.events + len(rows) < self._next:  # no point is reached
            self.events += len(rows)
            self.weight += float(weights[rows].sum())
            self.total += float(losses[rows] @ weights[rows])
            return
        all_weights = np.cumsum(np.append(self.weight, weights[rows]))
        totals = np.cumsum(np.append(self.total, losses[rows] * weights[rows]))
        before = self.events
        self.events += len(rows)
        while self._next <= self.events:
            k = self._next - before
            yield self._point(self._next, float(all_weights[k]), float(totals[k]), int(rows[k - 1]))
            self._next = self._after(self._next)
        self.weight, self.total = float(all_weights[-1]), float(totals[-1])

    def end(self) -> Point:
        """Return the last point."""
        return self._point(self.events, self.weight, self.total, -1)

    def _point(self, events: int, weight: float, total: float, row: int) -> Point:
        _, weight_before, total_before = self._last
        since = mean(total - total_before, weight - weight_before)
        loss = mean(total, weight)
        if events > self._last[0]:
            self._last = (events, weight, total)
        else:
            since = loss
        return Point(events, weight, loss, since, row)

    def _after(self, events: int) -> int:
        if isinstance(self.interval, int):
            return events + self.interval
        return max(events + 1, round(events * self.interval))


def mean(total: float, weight: float) -> float:
    """Return a mean, NaN if the weight is zero."""
    return total / weight if weight > 0.0 else math.nan
