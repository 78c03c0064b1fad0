"""The progressive score: the mean over a stream of what is measured before an event is learned."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from streamlearn.core import sums

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamlearn.core.arrays import Array


class WeightedMean:
    """A weighted mean, bit-identical for any split of the events into batches.

    >>> loss = WeightedMean()
    >>> loss.add(np.array([1.0, 0.0]), np.array([1.0, 2.0]))
    >>> loss.add_one(0.5, 1.0)
    >>> loss.mean, loss.count
    (0.375, 3)
    """

    def __init__(self) -> None:
        self.count = 0
        self.total = self.weight = 0.0  # of weighted values, and of weights

    @property
    def mean(self) -> float:
        """Return the mean; NaN before the first event."""
        return mean_of(self.total, self.weight)

    def add(self, values: Array, weights: Array) -> None:
        """Add events, all with finite values."""
        pairs = np.empty((2, len(values)))
        np.multiply(values, weights, out=pairs[0])
        pairs[1] = weights
        self.add_pairs(pairs)

    def add_pairs(self, pairs: Array) -> None:
        """Add events as a row of weighted values, and one of weights."""
        totals = np.array([self.total, self.weight])
        sums.add_in_order(totals, pairs)
        self.total, self.weight = totals.tolist()
        self.count += pairs.shape[1]

    def add_one(self, value: float, weight: float) -> None:
        """Add one event."""
        self.total += value * weight
        self.weight += weight
        self.count += 1

    def state(self) -> dict[str, Any]:
        """Copy the state for a checkpoint."""
        return {"count": self.count, "total": self.total, "weight": self.weight}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore the state."""
        self.count, self.total, self.weight = state["count"], state["total"], state["weight"]


def mean_of(total: float, weight: float) -> float:
    """Return the mean; NaN if the weight is 0."""
    return total / weight if weight > 0.0 else math.nan
