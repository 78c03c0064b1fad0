"""The order in which records of several partitions take turns."""

from libc.stdint cimport int64_t

import numpy as np


def places(const int64_t[:] turns):
    """Where in `turns` the first one is, the second, .. so that they ascend.

    >>> places(np.array([2, 0, 1])), places(np.array([9, 0, 9]))
    (array([1, 2, 0]), array([1, 0, 2]))
    """
    cdef Py_ssize_t i, n = len(turns)
    order = np.full(n, -1, dtype=np.int64)
    cdef int64_t[::1] place = order
    for i in range(n):  # each number once, as a rule: no need to sort
        if not 0 <= turns[i] < n or place[turns[i]] >= 0:
            return np.argsort(turns, kind="stable")
        place[turns[i]] = i
    return order
