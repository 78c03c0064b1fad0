"""A shard of a risk that depends on w through the scores of its rows alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from streamlearn.hindsight.inner import inner
from streamlearn.hindsight.points import ScoreCache, interpolated

if TYPE_CHECKING:
    from streamlearn.hindsight.points import LazyPoint, Segment
    from streamlearn.hindsight.risk import Vector


class ScoredShard:
    """The part of a risk that some rows contribute."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.cache = ScoreCache(self.scores)

    def scores(self, w: Vector) -> Vector:
        """Return the score of every row; m x K with K outputs."""
        raise NotImplementedError

    def combine_rows(self, slopes: Vector) -> Vector:
        """Return the sum of slope_i x_i: the gradient, given the slopes of the rows."""
        raise NotImplementedError

    def value_and_slope(self, scores: Vector) -> tuple[float, Vector]:
        """Return the value at these scores, and a subgradient in them."""
        raise NotImplementedError

    def value_and_gradient(self, w: Vector) -> tuple[float, Vector]:
        """Return this part of the risk and of its subgradient."""
        value, slope = self.value_and_slope(self.scores(w))
        return value, self.combine_rows(slope)

    def value_and_gradient_at(self, point: LazyPoint) -> tuple[float, Vector]:
        """Return the same at a point; half a pass if its scores are cached."""
        value, slope = self.value_and_slope(self.cache.at(point))
        return value, self.combine_rows(slope)

    def value_and_rise(self, segment: Segment) -> tuple[float, float]:
        """Return the value on a segment, and its derivative in the step; no pass."""
        a, b = self.cache.at(segment.start), self.cache.at(segment.end)
        value, slope = self.value_and_slope(interpolated(a, b, segment.step))
        return value, inner(np.ravel(slope), np.ravel(b - a))
