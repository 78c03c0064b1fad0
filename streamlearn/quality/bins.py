"""Sums over narrow bins of numbers: order statistics of a stream in bounded memory.

A bin holds the numbers with the same sign, exponent and leading bits of the mantissa: all bits as
long as the distinct numbers fit, and then as many as still fit. So bins are narrow where the
numbers are, at any magnitude, and do not depend on the order of the numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from streamlearn.core.arrays import Array

MAX_BINS = 1 << 16
BUFFER = 1 << 17  # numbers that are merged together
LARGEST = np.finfo(float).max


class Bins:
    """Sums by bin of several columns.

    >>> bins = Bins(2)
    >>> bins.add(np.array([3.0, -0.5, 3.0]), np.array([1.0, 2.0, 4.0]), np.ones(3))
    >>> values, sums = bins.used()
    >>> values, sums
    (array([-0.5,  3. ]), array([[2., 5.],
           [1., 2.]]))
    """

    def __init__(self, columns: int) -> None:
        self._keys = np.zeros(0, np.int64)  # ascending
        self._sums = np.zeros((columns, 0))
        self._dropped = 0  # bits of a number that do not count
        self._waiting: list[tuple[Array, Array]] = []  # keys, and a row for each column
        self._waiting_numbers = 0

    def add(self, values: Array, *amounts: Array) -> None:
        """Add numbers, with an amount for each column, one after the other."""
        start, columns = 0, np.array(np.broadcast_arrays(*amounts, values)[:-1], dtype=float)
        while start < len(values):
            # merged at the same numbers, however they are cut into batches
            stop = min(len(values), start + BUFFER - self._waiting_numbers)
            self._waiting.append((keys_of(values[start:stop]), columns[:, start:stop]))
            self._waiting_numbers += stop - start
            start = stop
            if self._waiting_numbers == BUFFER:
                self._merge()

    def mirror(self) -> None:
        """Change the sign of all numbers."""
        self._merge()
        self._keys, self._sums = -self._keys[::-1], self._sums[:, ::-1].copy()

    def replace(self, sums: Array) -> None:
        """Replace the sums of the bins that `used` returned."""
        self._sums = sums

    def used(self) -> tuple[Array, Array]:
        """Return the numbers in the middle of the bins in use, ascending, and their sums."""
        self._merge()
        return values_of(self._keys, self._dropped), self._sums

    def _merge(self) -> None:
        """Add what waits, and drop bits until the bins are few enough."""
        if not self._waiting:
            return
        keys, columns = zip(*self._waiting, strict=True)
        self._waiting, self._waiting_numbers = [], 0
        more = shortened(np.concatenate(keys), self._dropped)
        self._keys, place = np.unique(np.concatenate([self._keys, more]), return_inverse=True)
        self._sums = np.array(
            [
                np.bincount(place, column, len(self._keys))
                for column in np.concatenate([self._sums, *columns], axis=1)
            ]
        )
        fewer = 0
        while np.count_nonzero(np.diff(shortened(self._keys, fewer))) >= MAX_BINS:
            fewer += 1
        if fewer:
            short = shortened(self._keys, fewer)
            first = np.flatnonzero(np.diff(short, prepend=short[0] - 1))
            self._keys, self._sums = short[first], np.add.reduceat(self._sums, first, axis=1)
            self._dropped += fewer


def keys_of(values: Array) -> Array:
    """Return integers in the order of numbers; those of opposite numbers are opposite."""
    bits = np.ascontiguousarray(values, dtype=float).view(np.int64)
    size = bits & np.int64(0x7FFFFFFFFFFFFFFF)
    found: Array = np.where(bits < 0, -size, size)
    return found


def shortened(keys: Array, bits: int) -> Array:
    """Return keys without their last bits."""
    found: Array = np.sign(keys) * (np.abs(keys) >> bits)
    return found


def values_of(keys: Array, dropped: int) -> Array:
    """Return the number in the middle of each bin, whose keys lack so many bits."""
    half = (1 << dropped) >> 1
    bits = np.where(keys == 0, 0, (np.abs(keys) << dropped) + half)
    found: Array = np.copysign(np.minimum(bits.view(float), LARGEST), keys)
    return found


def equal_bins(weights: Array, bins: int) -> Array:
    """Return the number of the bin of each weight, so that bins weigh about the same.

    >>> equal_bins(np.array([1.0, 1.0, 5.0, 1.0]), 2)
    array([0, 0, 1, 1])
    """
    middle = (np.cumsum(weights) - weights / 2.0) / weights.sum()
    found: Array = np.minimum((middle * bins).astype(np.intp), bins - 1)
    return found
