"""The empirical risk as solvers see it (004, section 4 and Figure 2).

Only w goes in and (value, gradient) come out; the data stay where they are. Shards of the data
can be served by threads, and a solver does not notice.
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
    """A convex function of w, of which solvers ask no more than this."""

    @property
    def size(self) -> int:
        """The length of w."""

    def value_and_gradient(self, w: Vector) -> tuple[float, Vector]:
        """The value at w and a subgradient there, in an array of its own."""


class RowRisk(Risk, Protocol):
    """The weighted mean of a loss over rows: its parts are at hand as well."""

    @property
    def rows(self) -> int:
        """How many rows these are."""

    def scores(self, w: Vector) -> Vector:
        """The score of every row; m x K with K outputs."""

    def combine_rows(self, slopes: Vector) -> Vector:
        """The sum of slope_i x_i, the gradient that belongs to slopes of the rows."""


@dataclass(frozen=True)
class SerialRisk:
    """Rows start .. stop - 1 in one pass after the other; `weights` are shares of the mean."""

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
        """How many rows these are."""
        return self.stop - self.start

    def value_and_gradient(self, w: Vector) -> tuple[float, Vector]:
        """The share of these rows in the risk, and in its subgradient."""
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
        """The score of every row; m x K with K outputs."""
        w = self._checked(w)
        several = (self.outputs,) if isinstance(self.loss, VectorLoss) else ()
        result = np.empty((self.rows, *several))
        rows = (self.start, self.stop)
        self.matrix.scores(w, self.outputs, self.fit_intercept, *rows, result)
        return result

    def combine_rows(self, slopes: Vector) -> Vector:
        """The sum of slope_i x_i over these rows."""
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
            raise ValueError(f"w has shape {w.shape}; this risk takes {self.size} numbers")
        return w


class ShardedRisk:
    """The sum of risks, each asked in a thread of its own."""

    def __init__(self, shards: Sequence[RowRisk]) -> None:
        self.shards = list(shards)
        self.size = self.shards[0].size
        self.rows = sum(shard.rows for shard in self.shards)
        self._threads = ThreadPoolExecutor(len(self.shards), thread_name_prefix="risk")

    def value_and_gradient(self, w: Vector) -> tuple[float, Vector]:
        """The sums of the shards' values and gradients, in the order of the shards."""
        parts = list(self._threads.map(lambda shard: shard.value_and_gradient(w), self.shards))
        gradient = parts[0][1]
        for _, more in parts[1:]:
            gradient += more
        return sum(value for value, _ in parts), gradient

    def scores(self, w: Vector) -> Vector:
        """The score of every row."""
        return np.concatenate(list(self._threads.map(lambda shard: shard.scores(w), self.shards)))

    def combine_rows(self, slopes: Vector) -> Vector:
        """The sum of slope_i x_i over all shards."""
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
    """The risk of all rows, in shards that end before the rows `ends`."""
    starts = [0, *ends[:-1]]
    shards = [
        SerialRisk(matrix, y, loss, weights, outputs, fit_intercept, start, stop)
        for start, stop in zip(starts, ends, strict=True)
    ]
    return shards[0] if len(shards) == 1 else ShardedRisk(shards)
