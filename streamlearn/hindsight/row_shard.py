"""A shard of rows with a loss for each: all that solvers ask of rows, in sums over them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from streamlearn.hindsight.balancing import conjugate_sum, slope_totals
from streamlearn.hindsight.inner import inner
from streamlearn.hindsight.passes import value_and_gradient
from streamlearn.hindsight.scored_shard import ScoredShard
from streamlearn.losses import Loss, VectorLoss

if TYPE_CHECKING:
    from streamlearn.hindsight.balancing import Balance
    from streamlearn.hindsight.passes import RowMatrix
    from streamlearn.hindsight.points import LazyPoint
    from streamlearn.hindsight.risk import Vector


class RowShard(ScoredShard):
    """The rows start .. stop - 1 of a matrix; `weights` are shares of the mean over all shards."""

    def __init__(
        self,
        matrix: RowMatrix,
        y: Vector,
        loss: Loss | VectorLoss,
        weights: Vector,
        outputs: int,
        *,
        fit_intercept: bool,
        start: int = 0,
        stop: int | None = None,
    ) -> None:
        super().__init__((matrix.columns + fit_intercept) * outputs)
        self.matrix = matrix
        self.loss = loss
        self.outputs = outputs
        self.fit_intercept = fit_intercept
        self.start, self.stop = start, matrix.rows if stop is None else stop
        self.rows = self.stop - start
        self._all_y, self._all_weights = y, weights
        self.y, self.weights = y[start : self.stop], weights[start : self.stop]

    def value_and_gradient(self, w: Vector) -> tuple[float, Vector]:
        """Return these rows' part of the risk and of its subgradient, in one pass."""
        w = self._checked(w)
        gradient = np.zeros(self.size)
        value = value_and_gradient(
            self.matrix,
            self.loss,
            self._all_y,
            self._all_weights,
            w,
            self.outputs,
            self.fit_intercept,
            self.start,
            self.stop,
            gradient,
        )
        return value, gradient

    def scores(self, w: Vector) -> Vector:
        """Return the score of every row; m x K with K outputs."""
        w = self._checked(w)
        several = (self.outputs,) if isinstance(self.loss, VectorLoss) else ()
        result = np.empty((self.rows, *several))
        rows = (self.start, self.stop)
        self.matrix.scores(w, self.outputs, self.fit_intercept, *rows, result)
        return result

    def combine_rows(self, slopes: Vector) -> Vector:
        """Return the sum of slope_i x_i over these rows."""
        slopes = np.ascontiguousarray(slopes, dtype=float)
        if len(slopes) != self.rows:
            raise ValueError(f"{len(slopes)} slopes for {self.rows} rows")
        total = np.zeros(self.size)
        rows = (self.start, self.stop)
        self.matrix.combine_rows(slopes, self.outputs, self.fit_intercept, *rows, total)
        return total

    def value_and_slope(self, scores: Vector) -> tuple[float, Vector]:
        """Return the weighted sum of the losses, and its slopes."""
        values = np.asarray(self.loss.value(scores, self.y))
        return inner(self.weights, values), self._weighted(self._slopes(scores))

    def lowest(self) -> float:
        """Return the weighted sum of the losses' minima."""
        if isinstance(self.loss, VectorLoss):
            # the conjugate at 0 is minus the minimum
            lowest = -self.loss.conjugate(np.zeros((self.rows, self.outputs)), self.y)
        else:
            lowest = self.loss.lowest(self.y)
        return inner(self.weights, lowest)

    def squares(self) -> Vector:
        """Return the weighted sum of each feature's square."""
        total = np.zeros(self.matrix.columns)
        self.matrix.add_squares(self.weights, self.start, self.stop, total)
        return total

    def hessian_product(self, point: LazyPoint, v: Vector) -> Vector:
        """Return the product of the Hessian at a point with v, in one pass; for smooth losses."""
        if not isinstance(self.loss, Loss):
            raise ValueError(f"{self.loss!r} has several outputs")
        curvatures = self.loss.curvature(self.cache.at(point), self.y)
        return self.combine_rows(self.weights * curvatures * self.scores(v))

    def slope_totals(self, point: LazyPoint) -> Vector:
        """Return the sums from which `Balance` finds how slopes must change."""
        slopes = self._slopes(self.cache.at(point))
        return slope_totals(self.loss, self.weights, slopes, self.y)

    def dual_gradient(self, point: LazyPoint, balance: Balance) -> Vector:
        """Return the sum of slope_i x_i with balanced slopes."""
        return self.combine_rows(self._weighted(self._balanced_slopes(point, balance)))

    def conjugate(self, point: LazyPoint, balance: Balance, scale: float) -> float:
        """Return the weighted sum of the conjugates at `scale` times the balanced slopes."""
        slopes = scale * self._balanced_slopes(point, balance)
        return conjugate_sum(self.loss, self.weights, slopes, self.y)

    def _slopes(self, scores: Vector) -> Vector:
        return np.asarray(self.loss.slope(scores, self.y))

    def _balanced_slopes(self, point: LazyPoint, balance: Balance) -> Vector:
        return balance.apply(self._slopes(self.cache.at(point)), self.y)

    def _weighted(self, slopes: Vector) -> Vector:
        weighted: Vector = (slopes.T * self.weights).T
        return weighted

    def _checked(self, w: Vector) -> Vector:
        w = np.ascontiguousarray(w, dtype=float)
        if w.shape != (self.size,):
            raise ValueError(f"w has shape {w.shape}; it must have {self.size} numbers")
        return w
