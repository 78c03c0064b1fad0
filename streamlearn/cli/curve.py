"""Progressive validation: the loss of events before they were learned, at growing intervals."""

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
    """Where the curve is after some events."""

    events: int  # that were learned
    weight: float  # theirs, in sum
    loss: float  # the mean over all of them
    since: float  # the mean over those since the point before
    row: int  # of the last of them, in the batch that was given


class ProgressiveCurve:
    """The mean loss over a stream, with points at 1, 2, 4, 8 .. events.

    Parameters
    ----------
    interval
        From one point to the next: a factor if it is a float, as in Vowpal Wabbit, or so many
        events if it is an int.

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
        self._told = (0, 0.0, 0.0)  # events, weight and total at the last point

    def add(self, losses: Array, weights: Array) -> Iterator[Point]:
        """The next events in their order, NaN for those not learned; the points they bring."""
        rows = np.flatnonzero(~np.isnan(losses))
        if not len(rows):
            return
        if self.events + len(rows) < self._next:  # no point among them: the sums are enough
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
        """Where the curve ends."""
        return self._point(self.events, self.weight, self.total, -1)

    def _point(self, events: int, weight: float, total: float, row: int) -> Point:
        _, weight_then, total_then = self._told
        since = mean(total - total_then, weight - weight_then)
        loss = mean(total, weight)
        if events > self._told[0]:
            self._told = (events, weight, total)
        else:
            since = loss
        return Point(events, weight, loss, since, row)

    def _after(self, events: int) -> int:
        if isinstance(self.interval, int):
            return events + self.interval
        return max(events + 1, round(events * self.interval))


def mean(total: float, weight: float) -> float:
    """A mean; NaN of nothing."""
    return total / weight if weight > 0.0 else math.nan
