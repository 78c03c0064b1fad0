"""Sums of events strictly in order, so that they are bit-identical for any split into batches."""

cimport cython

import numpy as np


@cython.boundscheck(False)
@cython.wraparound(False)
def add_in_order(double[::1] totals, const double[:, :] values):
    """Add the columns of `values` to `totals`, one after the other.

    >>> totals = np.array([1e16])
    >>> add_in_order(totals, np.ones((1, 4)))  # a pairwise sum would be 1e16 + 4
    >>> totals
    array([1.e+16])
    """
    cdef Py_ssize_t i, k
    cdef double total
    if len(totals) != len(values):
        raise ValueError(f"{len(values)} rows for {len(totals)} totals")
    for k in range(len(totals)):
        total = totals[k]
        for i in range(values.shape[1]):
            total += values[k, i]
        totals[k] = total


@cython.boundscheck(False)
@cython.wraparound(False)
def add_in_blocks(double[::1] totals, const double[:, :] values, Py_ssize_t used, Py_ssize_t size):
    """Add the columns of `values` in blocks; the first block already has `used` columns.

    Return the sums of the blocks that became full, a column each, and leave the rest in `totals`.

    >>> totals = np.array([1.0])
    >>> add_in_blocks(totals, np.array([[2.0, 3.0, 4.0, 5.0]]), used=1, size=2), totals
    (array([[3., 7.]]), array([5.]))
    """
    cdef Py_ssize_t i, k, at, left
    cdef double total
    if len(totals) != len(values) or not 0 <= used < size:
        raise ValueError(f"{len(values)} rows for {len(totals)} totals, {used} of {size} used")
    full = np.empty((len(totals), (used + values.shape[1]) // size))
    cdef double[:, ::1] found = full
    for k in range(len(totals)):
        total, left, at = totals[k], size - used, 0
        for i in range(values.shape[1]):
            total += values[k, i]
            left -= 1
            if left == 0:
                found[k, at] = total
                total, left = 0.0, size
                at += 1
        totals[k] = total
    return full
