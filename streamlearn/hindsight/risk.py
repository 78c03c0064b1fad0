"""The empirical risk as solvers see it ([Teo07] section 4 and Figure 2).

A solver passes w and gets (value, gradient); it never sees the data. Threads may process shards of
the data, transparently to the solver.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamlearn.hindsight.passes import value_and_gradient
from streamlearn.losses import VectorLoss

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamlearn.hindsight.passes import RowMatrix
    from streamlearn.losses import Loss

Vector: TypeAlias = NDArray[np.float64]


class Risk(Protocol):
    """A convex function of w: the interface that solvers need."""

    @property
    def size(self) -> int:
        """The length of w."""

    def value_and_gradient(self, w: Vector) -> tuple[float, Vector]:
        """Return the value at w and a subgradient there, in a new array."""


class RowRisk(Risk, Protocol):
    """The weighted mean of a loss over rows, which also exposes row scores."""

    @property
    def rows(self) -> int:
        """The number of rows."""

    def scores(self, w: Vector) -> Vector:
        """Return the score of every row; m x K with K outputs."""

    def combine_rows(self, slopes: Vector) -> Vector:
        """Return the sum of slope_i x_i: the gradient, given the slopes of the rows."""


@dataclass(frozen=True)
class SerialRisk:
    """The risk of rows start .. stop - 1, in one thread; `weights` are shares of the mean."""

    matrix: RowMatrix
    y: Vector
    loss: Loss | VectorLoss
    weights: Vector
    outputs: int
    fit_intercept: bool
    start: int
    stop: int

    @property
    def size(self) -> int:
        """The length of w."""
        return (self.matrix.columns + self.fit_intercept) * self.outputs

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self.stop - self.start

    def value_and_gradient(self, w: Vector) -> tuple[float, Vector]:
        """Return these rows' part of the risk and of its subgradient."""
        w = self._checked(w)
        gradient = np.zeros(self.size)
        value = value_and_gradient(
            self.matrix,
            self.loss,
            self.y,
            self.weights,
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

    def _checked(self, w: Vector) -> Vector:
        w = np.ascontiguousarray(w, dtype=float)
        if w.shape != (self.size,):
            raise ValueError(f"w has shape {w.shape}; it must have {self.size} numbers")
        return w


class ShardedRisk:
    """The sum of risks, each computed in its own thread."""

    def __init__(self, shards: Sequence[RowRisk]) -> None:
        self.shards = list(shards)
        self.size = self.shards[0].size
        self.rows = sum(shard.rows for shard in self.shards)
        self._threads = ThreadPoolExecutor(len(self.shards), thread_name_prefix="risk")

    def value_and_gradient(self, w: Vector) -> tuple[float, Vector]:
        """Return the sums of the shards' values and gradients, added in the order of the shards."""
        parts = list(self._threads.map(lambda shard: shard.value_and_gradient(w), self.shards))
        gradient = parts[0][1]
        for _, more in parts[1:]:
            gradient += more
        return sum(value for value, _ in parts), gradient

    def scores(self, w: Vector) -> Vector:
        """Return the score of every row."""
        return np.concatenate(list(self._threads.map(lambda shard: shard.scores(w), self.shards)))

    def combine_rows(self, slopes: Vector) -> Vector:
        """Return the sum of slope_i x_i over all shards."""
        parts = np.split(slopes, np.cumsum([shard.rows for shard in self.shards])[:-1])
        backs = self._threads.map(lambda shard, part: shard.combine_rows(part), self.shards, parts)
        total: Vector = np.sum(list(backs), axis=0)
        return total


def row_risk(
    matrix: RowMatrix,
    y: Vector,
    loss: Loss | VectorLoss,
    weights: Vector,
    outputs: int,
    *,
    fit_intercept: bool,
    ends: Sequence[int],
) -> SerialRisk | ShardedRisk:
    """Build the risk of all rows, in shards that end before the rows `ends`."""
    starts = [0, *ends[:-1]]
    shards = [
        SerialRisk(matrix, y, loss, weights, outputs, fit_intercept, start, stop)
        for start, stop in zip(starts, ends, strict=True)
    ]
    return shards[0] if len(shards) == 1 else ShardedRisk(shards)
