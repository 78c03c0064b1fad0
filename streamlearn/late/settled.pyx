"""Ids that are done with, in the order in which they were settled.

Of each there is the hash, whose seed is a secret, and when it was settled. An id that comes is
taken for another one if all 64 bits are the same: with a million remembered, one in 10^13.
"""

cimport cython
from libc.stdint cimport int64_t, uint8_t, uint64_t

from streamlearn.late.places cimport Places

import numpy as np

cdef enum:
    NUMBERS = (1 << 30) - 1  # of a place: the last bits of an id's number


@cython.final
cdef class Settled:
    """A ring: an id's place is its number among all that were settled, less its upper bits."""

    def __init__(self):
        self.widen(64)

    def __sizeof__(self):
        return object.__sizeof__(self) + sum(array.nbytes for array in self.arrays)

    cdef int64_t append(self, uint64_t tag, double stamp, uint8_t kind) except -1:
        """One more; its place."""
        cdef Py_ssize_t at
        if self.last - self.first > self.mask:
            self.widen(2 * (self.mask + 1))
        at = self.last & self.mask
        self.tags[at], self.stamps[at], self.kinds[at] = tag, stamp, kind
        self.last += 1
        self.count += 1
        return <int64_t>1 << SIDE_BIT | ((self.last - 1) & NUMBERS)

    cdef void remove(self, int64_t place) noexcept:
        """One goes."""
        self.kinds[place & self.mask] = GONE
        self.count -= 1

    cdef int64_t oldest(self) noexcept:
        """The place of the one that was settled first; -1: there is none."""
        while self.first < self.last and self.kinds[self.first & self.mask] == GONE:
            self.first += 1
        if self.first == self.last:
            return -1
        return <int64_t>1 << SIDE_BIT | (self.first & NUMBERS)

    cdef int widen(self, Py_ssize_t n) except -1:
        """Room for n, a power of two, of which those that are there keep their places."""
        cdef Py_ssize_t mask = n - 1
        fresh = (
            np.zeros(n, dtype=np.uint64), np.zeros(n), np.zeros(n, dtype=np.uint8))
        cdef uint64_t* tags = <uint64_t*><size_t>fresh[0].ctypes.data
        cdef double* stamps = <double*><size_t>fresh[1].ctypes.data
        cdef uint8_t* kinds = <uint8_t*><size_t>fresh[2].ctypes.data
        cdef int64_t i
        for i in range(self.first, self.last):
            tags[i & mask] = self.tags[i & self.mask]
            stamps[i & mask] = self.stamps[i & self.mask]
            kinds[i & mask] = self.kinds[i & self.mask]
        self.arrays, self.mask = fresh, mask
        self.tags, self.stamps, self.kinds = tags, stamps, kinds
        return 0

    cdef void restamp(self, double most) noexcept:
        """None was settled later than this; those of no known time were settled now."""
        cdef int64_t i
        for i in range(self.first, self.last):
            if not self.stamps[i & self.mask] <= most:
                self.stamps[i & self.mask] = most

    def state(self):
        """What a checkpoint keeps: a copy."""
        cdef Py_ssize_t n = self.last - self.first, at = self.first & self.mask
        head = min(n, self.mask + 1 - at)
        parts = []
        for array in self.arrays:
            whole = np.empty(n, dtype=array.dtype)
            whole[:head] = array[at:at + head]
            whole[head:] = array[:n - head]
            parts.append(whole)
        return dict(zip(("tags", "stamps", "kinds"), parts, strict=True))

    def restore(self, state, Places places):
        """Take over a state that `state` gave, and tell `places`; nothing is there yet."""
        cdef Py_ssize_t i, n = len(state["tags"])
        size = 64
        while size < n:
            size *= 2
        self.widen(size)
        for array, name in zip(self.arrays, ("tags", "stamps", "kinds"), strict=True):
            array[:n] = state[name]
        self.last = n
        for i in range(n):
            if self.kinds[i] != GONE:
                places.enter(self.tags[i], <int64_t>1 << SIDE_BIT | i)
                self.count += 1
