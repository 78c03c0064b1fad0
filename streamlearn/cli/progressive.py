"""Progressive validation: the mean loss before learning, at growing intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from streamlearn.core.progressive import WeightedMean, mean_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streamlearn.core.arrays import Array


@dataclass(frozen=True, slots=True)
class CurvePoint:
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
        self._loss = WeightedMean()
        self._next = interval if isinstance(interval, int) else 1
        self._last = (0, 0.0, 0.0)  # events, total and weight at the last point

    @property
    def events(self) -> int:
        """Events learned so far."""
        return self._loss.count

    def add(self, losses: Array, weights: Array) -> Iterator[CurvePoint]:
        """Add the losses of events, NaN for those not learned; yield the points reached."""
        learned = np.flatnonzero(~np.isnan(losses))
        start = 0
        while start < len(learned):
            rows = learned[start : start + self._next - self.events]
            self._loss.add(losses[rows], weights[rows])
            if self.events == self._next:
                yield self._point(int(rows[-1]))
                self._next = self._after(self._next)
            start += len(rows)

    def end(self) -> CurvePoint:
        """Return the last point."""
        return self._point(-1)

    def _point(self, row: int) -> CurvePoint:
        loss = self._loss
        events, total, weight = self._last
        since = loss.mean
        if loss.count > events:
            since = mean_of(loss.total - total, loss.weight - weight)
            self._last = (loss.count, loss.total, loss.weight)
        return CurvePoint(loss.count, loss.weight, loss.mean, since, row)

    def _after(self, events: int) -> int:
        if isinstance(self.interval, int):
            return events + self.interval
        return max(events + 1, round(events * self.interval))
