"""The tangents of a learner's losses, whose sum over all events is known exactly.

At each event the loss has a tangent at the learner's score before learning. The sum of the tangents
at fixed weights u is linear in u: <u, sum of slope_t x_t>, besides a constant. So a sample has to
estimate only what the losses at u are above the tangents, which is of second order in the
difference between u and the learner (a difference estimator, [Cochran77] section 7.2).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse

from streamlearn.hindsight.inner import inner

if TYPE_CHECKING:
    from streamlearn.core.arrays import Array
    from streamlearn.penalties import Penalty

SHARE = 0.75  # of the slopes, because a learner's are larger than those of the best fixed model
# A linear part is bounded for each feature, because a sample with few of its rows says little about
# the curvature: by standard errors of the sum over the sample, or, where that has no row, so that
# the weight stays small, and 0 with l1.
DOUBT = 3.0
REACH = 4.0
INSIDE = 0.95  # of l1


@dataclass(frozen=True)
class Tangents:
    """Slopes of the rows of a sample, and the sum of slope * row over all events, by column.

    total: the sum of the slopes of all events, if there is a free intercept.
    """

    slopes: Array
    gradient: Array
    total: float | None

    @classmethod
    def of(cls, slopes: Array, gradient: Array, columns: int, intercept: str) -> Tangents:
        """Return those of a learner; column 0 is the intercept if that is inside the penalty."""
        summed = gradient[0 if intercept == "inside" else 1 :][:columns]
        wide = np.zeros(columns)
        wide[: len(summed)] = SHARE * summed
        total = SHARE * float(gradient[0]) if intercept == "free" else None
        return cls(SHARE * slopes, wide, total)

    def part(self, rows: slice) -> Tangents:
        """Return those of some of the rows."""
        return Tangents(self.slopes[rows], self.gradient, self.total)

    def linear(self, X: Any, weights: Array, share: float, penalty: Penalty) -> Array:
        """Return what to add to the mean gradient of rows that are a share of all events.

        It replaces the sum of their tangents by that of all events. A free intercept gets nothing:
        its own sums are made equal by weighing slopes of both signs differently. So weights that
        change no score, as of the intercept and of indicators of all values of a field, pay
        nothing.
        """
        share /= float(weights.sum())
        pulls = weights * self.slopes / float(weights.sum())
        if self.total is not None and pulls.any():
            sizes = np.abs(pulls)
            pulls += (share * self.total - pulls.sum()) / sizes.sum() * sizes
        squares = scipy.sparse.csr_array((X.data**2, X.indices, X.indptr), shape=X.shape)
        change = share * self.gradient - X.T @ pulls
        chance = np.sqrt(squares.T @ pulls**2)
        limit = np.maximum(DOUBT * chance, INSIDE * penalty.l1 + REACH * penalty.l2)
        bounded: Array = np.clip(change, -limit, limit)
        return bounded

    def above(self, losses: Array, scores: Array) -> Array:
        """Return how far losses at scores, without the intercept, are above the tangents."""
        above: Array = losses - self.slopes * scores
        return above

    def sum(self, w: Array) -> float:
        """Return the sum of the tangents of all events at these weights."""
        return inner(self.gradient[: len(w)], w)
