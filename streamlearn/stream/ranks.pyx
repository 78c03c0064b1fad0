"""The order of records of several partitions, by their ranks."""

from libc.stdint cimport int64_t

import numpy as np


def order_of(const int64_t[:] ranks):
    """Return the places of `ranks` in ascending order.

    >>> order_of(np.array([2, 0, 1])), order_of(np.array([9, 0, 9]))
    (array([1, 2, 0]), array([1, 0, 2]))
    """
    cdef Py_ssize_t i, n = len(ranks)
    order = np.full(n, -1, dtype=np.int64)
    cdef int64_t[::1] place = order
    for i in range(n):  # usually a permutation, which needs no sort
        if not 0 <= ranks[i] < n or place[ranks[i]] >= 0:
            return np.argsort(ranks, kind="stable")
        place[ranks[i]] = i
    return order
