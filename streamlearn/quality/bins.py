"""Sums over narrow bins of numbers: order statistics of a stream in bounded memory.

A bin holds the numbers with the same sign, exponent and ten leading bits of the mantissa, so that
its width is a thousandth of its numbers, at any magnitude. Memory that no number touches is never
allocated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from streamlearn.core.arrays import Array

MANTISSA_BITS = 10
DROPPED_BITS = 23 - MANTISSA_BITS  # of a float32
SIDE = (0x7F800000 >> DROPPED_BITS) + 1  # bins of numbers >= 0; the last is that of infinity
BINS = 2 * SIDE - 1


class Bins:
    """Sums by bin of several columns.

    >>> bins = Bins(1)
    >>> bins.add(0, bins.places(np.array([3.0, -0.5, 3.0001])), np.array([1.0, 2.0, 4.0]))
    >>> places, sums = bins.used()
    >>> values_of(places).round(3), sums
    (array([-0.5  ,  3.001]), array([[2., 5.]]))
    """

    def __init__(self, columns: int) -> None:
        self.sums = np.zeros((columns, BINS))

    @staticmethod
    def places(values: Array) -> Array:
        """Return the bin of each number."""
        with np.errstate(over="ignore"):  # infinity has a bin
            bits = values.astype(np.float32).view(np.int32)
        places = (bits & 0x7FFFFFFF) >> DROPPED_BITS
        found: Array = np.where(bits < 0, SIDE - 1 - places, SIDE - 1 + places)
        return found

    def add(self, column: int, places: Array, amounts: Array) -> None:
        """Add amounts to a column, one after the other."""
        np.add.at(self.sums[column], places, amounts)

    def mirror(self) -> None:
        """Change the sign of all numbers."""
        self.sums = self.sums[:, ::-1].copy()

    def used(self) -> tuple[Array, Array]:
        """Return the bins in use, ascending, and their sums, a row for each column."""
        used = np.flatnonzero(self.sums.any(axis=0))
        return used, self.sums[:, used]


def values_of(places: Array) -> Array:
    """Return the number in the middle of each bin."""
    steps = places.astype(np.int64) - (SIDE - 1)
    bits = (np.abs(steps) << DROPPED_BITS) + np.where(steps == 0, 0, 1 << (DROPPED_BITS - 1))
    size = np.minimum(bits, 0x7F7FFFFF).astype(np.int32).view(np.float32).astype(float)
    values: Array = np.where(steps < 0, -size, size)
    return values


def equal_bins(weights: Array, bins: int) -> Array:
    """Return the number of the bin of each weight, so that bins weigh about the same.

    >>> equal_bins(np.array([1.0, 1.0, 5.0, 1.0]), 2)
    array([0, 0, 1, 1])
    """
    middle = (np.cumsum(weights) - weights / 2.0) / weights.sum()
    found: Array = np.minimum((middle * bins).astype(np.intp), bins - 1)
    return found
