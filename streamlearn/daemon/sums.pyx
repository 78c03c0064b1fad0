"""Sums over events in their order, one after the other: the same to the last bit in any batches."""

cimport cython

import numpy as np


@cython.boundscheck(False)
@cython.wraparound(False)
def add_in_order(double[::1] totals, const double[:, :] values):
    """Add the columns of `values`.

    >>> totals = np.array([1e16])
    >>> add_in_order(totals, np.ones((1, 4)))  # a sum in pairs would be 1e16 + 4
    >>> totals
    array([1.e+16])
    """
    cdef Py_ssize_t i, k
    cdef double total
    if len(totals) != len(values):
        raise ValueError(f"{len(values)} rows, and {len(totals)} sums")
    for k in range(len(totals)):
        total = totals[k]
        for i in range(values.shape[1]):
            total += values[k, i]
        totals[k] = total


@cython.boundscheck(False)
@cython.wraparound(False)
def blocks(double[::1] totals, const double[:, :] values, Py_ssize_t used, Py_ssize_t size):
    """Add the columns of `values` in blocks, of which the first has `used` columns already.

    The sums of those that became full, a column each; what is left over is in `totals`.

    >>> totals = np.array([1.0])
    >>> blocks(totals, np.array([[2.0, 3.0, 4.0, 5.0]]), used=1, size=2), totals
    (array([[3., 7.]]), array([5.]))
    """
    cdef Py_ssize_t i, k, at, left
    cdef double total
    if len(totals) != len(values) or not 0 <= used < size:
        raise ValueError(f"{len(values)} rows, {len(totals)} sums, {used} of {size}")
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
