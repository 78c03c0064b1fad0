"""The total of a loss over all events, from a sample and the distribution of a learner's scores.

Of each cell of the learner's scores (`score_cells`) the weight of all events is known. So the
sample is post-stratified: its rows count as much as all events with similar scores
([Cochran77] section 5A.9; the variance is that of the strata as they were drawn, [Holt79]).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from streamlearn.core.arrays import Array

LEAST = 10  # sampled events of a stratum


@dataclass(frozen=True)
class Strata:
    """Rows with weights and the cells of their scores; the weight of all events in each cell."""

    cells: Array
    weights: Array
    all_weights: Array

    @classmethod
    def single(cls, weights: Array, all_weight: float) -> Strata:
        """Return rows in one stratum."""
        cells = np.zeros(len(weights), np.uint16)
        return cls(cells, weights, np.array([all_weight, 0.0, 0.0, 0.0]))

    def part(self, rows: slice) -> Strata:
        """Return some of the rows, as a sample of the same events."""
        return Strata(self.cells[rows], self.weights[rows], self.all_weights)

    def without(self, rows: slice) -> Strata:
        """Return the other rows, as a sample of the other events."""
        seen = np.bincount(self.cells[rows], self.weights[rows], len(self.all_weights))
        cells, weights = (np.delete(each, rows) for each in (self.cells, self.weights))
        return Strata(cells, weights, np.maximum(self.all_weights - seen, 0.0))

    def calibrated(self) -> Array:
        """Return weights of the rows that add up to the weight of all events, in each stratum."""
        return self._calibrated()[1]

    def error(self, losses: Array) -> float:
        """Return the standard error of the total of these losses, in an infinite population."""
        stratum, weights = self._calibrated()
        rows, sums = np.bincount(stratum), np.bincount(stratum, weights)
        means = np.bincount(stratum, weights * losses) / sums
        residuals = weights * (losses - means[stratum])
        squares = np.bincount(stratum, residuals * residuals)
        return math.sqrt(float(squares @ (rows / np.maximum(rows - 1, 1))))

    def _calibrated(self) -> tuple[NDArray[np.int64], Array]:
        """Return the stratum and the calibrated weight of each row."""
        of_cell = self._stratum_of_cells()
        stratum = of_cell[self.cells]
        of_all, of_rows = np.bincount(of_cell, self.all_weights), np.bincount(stratum, self.weights)
        return stratum, self.weights * (of_all / of_rows)[stratum]

    def _stratum_of_cells(self) -> NDArray[np.int64]:
        """Return the stratum of each cell: neighbors are together until they have enough rows."""
        order = in_order(len(self.all_weights))
        rows = np.bincount(self.cells, minlength=len(order))[order].tolist()
        found = np.empty(len(order), np.int64)
        stratum, held, left = 0, 0, len(self.cells)
        for cell, here in zip(order.tolist(), rows, strict=True):
            found[cell] = stratum
            held, left = held + here, left - here
            if held >= LEAST and left >= LEAST:
                stratum, held = stratum + 1, 0
        return found


def in_order(cells: int) -> NDArray[np.int64]:
    """Return the cells by score, those of each class of labels together.

    >>> in_order(8).tolist()  # two sizes
    [6, 2, 0, 4, 7, 3, 1, 5]
    """
    positive = np.arange(0, cells, 4)
    scores = np.concatenate([positive[::-1] + 2, positive])
    return np.concatenate([scores, scores + 1])
