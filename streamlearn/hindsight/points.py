"""Points of a search, at which shards cache the scores of their rows.

The scores on a segment are combinations of those at its ends, which saves passes over the rows. A
point on a segment therefore knows how it was found. From that, a shard whose cache was lost
computes the same scores again, to the last bit.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from streamlearn.hindsight.risk import Vector

CACHED = 4  # points: the ends of a segment, and those where the next one may begin
LONGEST = 16  # segments until scores are computed from w again, also against rounding error
numbers = count()


@dataclass(frozen=True)
class Segment:
    """The way from `start` to `end`; `step` is a share of it."""

    start: LazyPoint
    end: LazyPoint
    step: float


@dataclass(frozen=True)
class LazyPoint:
    """A w: given, or on a segment, in which case it is not needed for the scores.

    `number` identifies the point, `age` counts the segments behind it.
    """

    number: int
    w: Callable[[], Vector] | None
    segment: Segment | None = None
    age: int = 0


class ScoreCache:
    """The scores of some rows at the latest points."""

    def __init__(self, scores: Callable[[Vector], Vector]) -> None:
        self._scores = scores
        self._cached: OrderedDict[int, Vector] = OrderedDict()

    def at(self, point: LazyPoint) -> Vector:
        """Return the scores at a point."""
        found = self._cached.get(point.number)
        if found is None:
            found = self._compute(point)
            self._cached[point.number] = found
            if len(self._cached) > CACHED:
                self._cached.popitem(last=False)
        else:
            self._cached.move_to_end(point.number)
        return found

    def _compute(self, point: LazyPoint) -> Vector:
        if point.w is not None:
            return self._scores(point.w())
        segment = point.segment
        if segment is None:
            raise ValueError("a point needs w or a segment")
        return interpolated(self.at(segment.start), self.at(segment.end), segment.step)


def interpolated(a: Vector, b: Vector, share: float) -> Vector:
    """Return a + share (b - a)."""
    point: Vector = a + share * (b - a)
    return point
