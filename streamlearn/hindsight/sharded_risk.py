"""The risk over shards: only w and sums over rows travel ([Teo07] Figure 2).

Sums are added in the order of the shards, so a result does not depend on which shard was faster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np

from streamlearn.hindsight.inner import inner
from streamlearn.hindsight.points import LONGEST, LazyPoint, ScoreCache, Segment, numbers
from streamlearn.hindsight.row_shard import RowShard
from streamlearn.hindsight.scored_shard import ScoredShard

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamlearn.hindsight.balancing import Balance
    from streamlearn.hindsight.executor import Executor, Threads
    from streamlearn.hindsight.risk import Vector

S = TypeVar("S", bound=ScoredShard)


class ShardedRisk(Generic[S]):
    """The sum of the shards' risks, which can be searched along segments."""

    def __init__(self, executor: Executor[S], size: int) -> None:
        self.executor = executor
        self.size = size

    def value_and_gradient(self, w: Vector) -> tuple[float, Vector]:
        """Return the value at w and a subgradient there."""
        return _total(self.executor.each(ScoredShard.value_and_gradient, w))

    def at(self, w: Vector) -> LazyPoint:
        """Return the point w."""
        return LazyPoint(next(numbers), self.executor.share(w))

    def between(self, segment: Segment, w: Vector) -> LazyPoint:
        """Return the point w of a segment; its scores cost no pass, or rarely half of one."""
        if segment.step == 1.0:
            return segment.end
        age = 1 + max(segment.start.age, segment.end.age)
        if age > LONGEST:
            return self.at(w)
        return LazyPoint(next(numbers), None, segment, age)

    def value_and_gradient_at(self, point: LazyPoint) -> tuple[float, Vector]:
        """Return the value at a point and a subgradient there; half a pass if it has scores."""
        return _total(self.executor.each(ScoredShard.value_and_gradient_at, point))

    def value_and_rise(self, segment: Segment) -> tuple[float, float]:
        """Return the value on a segment, and its derivative in the step; no pass."""
        values, rises = zip(*self.executor.each(ScoredShard.value_and_rise, segment), strict=True)
        return sum(values), sum(rises)


class RowRisk(ShardedRisk[RowShard]):
    """The weighted mean of a loss over rows."""

    def squares(self) -> Vector:
        """Return the weighted mean of each feature's square."""
        return _sum(self.executor.each(RowShard.squares))

    def hessian_product(self, point: LazyPoint, v: Vector) -> Vector:
        """Return the product of the Hessian at a point with v, in one pass."""
        return _sum(self.executor.each(RowShard.hessian_product, point, v))

    def slope_totals(self, point: LazyPoint) -> Vector:
        """Return the sums over slopes that balancing needs."""
        return _sum(self.executor.each(RowShard.slope_totals, point))

    def dual_gradient(self, point: LazyPoint, balance: Balance) -> Vector:
        """Return the sum of slope_i x_i with balanced slopes."""
        return _sum(self.executor.each(RowShard.dual_gradient, point, balance))

    def conjugate(self, point: LazyPoint, balance: Balance, scale: float) -> float:
        """Return the mean of the conjugates at `scale` times the balanced slopes."""
        return sum(self.executor.each(RowShard.conjugate, point, balance, scale))


class LocalRowRisk(RowRisk):
    """The same over rows in this process, which also exposes what belongs to single rows.

    <linear, w> is a part of the risk, but not of what is said of rows: scores, slopes and
    conjugates.
    """

    def __init__(self, executor: Threads[RowShard], linear: Vector | None = None) -> None:
        super().__init__(executor, executor.shards[0].size)
        self._linear = linear
        self._linear_values = ScoreCache(self._linear_value)
        self.rows = sum(shard.rows for shard in executor.shards)
        self._ends = np.cumsum([shard.rows for shard in executor.shards])[:-1]
        self._local = executor

    def value_and_gradient(self, w: Vector) -> tuple[float, Vector]:
        """Return the value at w and a subgradient there."""
        value, gradient = super().value_and_gradient(w)
        if self._linear is None:
            return value, gradient
        return value + inner(self._linear, w), gradient + self._linear

    def value_and_gradient_at(self, point: LazyPoint) -> tuple[float, Vector]:
        """Return the value at a point and a subgradient there; half a pass if it has scores."""
        value, gradient = super().value_and_gradient_at(point)
        if self._linear is None:
            return value, gradient
        return value + float(self._linear_values.at(point)[0]), gradient + self._linear

    def value_and_rise(self, segment: Segment) -> tuple[float, float]:
        """Return the value on a segment, and its derivative in the step; no pass."""
        value, rise = super().value_and_rise(segment)
        if self._linear is None:
            return value, rise
        a, b = (float(self._linear_values.at(one)[0]) for one in (segment.start, segment.end))
        return value + a + segment.step * (b - a), rise + b - a

    def _linear_value(self, w: Vector) -> Vector:
        return np.zeros(1) if self._linear is None else np.array([inner(self._linear, w)])

    def scores(self, w: Vector) -> Vector:
        """Return the score of every row."""
        parts = self._local.each(RowShard.scores, w)
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def combine_rows(self, slopes: Vector) -> Vector:
        """Return the sum of slope_i x_i over all rows."""
        if len(slopes) != self.rows:
            raise ValueError(f"{len(slopes)} slopes for {self.rows} rows")
        return _sum(self._local.map(RowShard.combine_rows, np.split(slopes, self._ends)))


def _total(parts: Sequence[tuple[float, Vector]]) -> tuple[float, Vector]:
    values, gradients = zip(*parts, strict=True)
    return sum(values), _sum(gradients)


def _sum(parts: Sequence[Vector]) -> Vector:
    """Add arrays to the first one, which may be read-only."""
    total = parts[0] if parts[0].flags.writeable else parts[0].copy()
    for part in parts[1:]:
        total += part
    return total
