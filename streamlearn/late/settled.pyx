"""Ids that are done with, in the order in which they were settled.

Of each there is the hash, whose seed is a secret, and when it was settled. An id that comes is
taken for another one if all 64 bits are the same: with a million remembered, one in 10^13.
"""

cimport cython
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.stdlib cimport free

from streamlearn.late.places cimport Places
from streamlearn.rules.table cimport room

import numpy as np

cdef enum:
    NUMBERS = (1 << 30) - 1  # of a place: the last bits of an id's number
    EACH = 17  # bytes of an id


@cython.final
cdef class Settled:
    """A ring: an id's place is its number among all that were settled, less its upper bits."""

    def __cinit__(self):
        self.widen(64)

    def __dealloc__(self):
        free(self.tags)
        free(self.stamps)
        free(self.kinds)

    def __sizeof__(self):
        return object.__sizeof__(self) + (self.mask + 1) * EACH

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
        """Room for n, a power of two; those that are there keep their places."""
        cdef Py_ssize_t mask = n - 1, old, new
        cdef int64_t i
        self.tags = <uint64_t*>room(self.tags, n * sizeof(uint64_t))
        self.stamps = <double*>room(self.stamps, n * sizeof(double))
        self.kinds = <uint8_t*>room(self.kinds, n)
        for i in range(self.first, self.last):
            old, new = i & self.mask, i & mask
            self.tags[new], self.stamps[new] = self.tags[old], self.stamps[old]
            self.kinds[new] = self.kinds[old]
        self.mask = mask
        return 0

    cdef void restamp(self, double most) noexcept:
        """None was settled later than this; those of no known time were settled now."""
        cdef int64_t i
        for i in range(self.first, self.last):
            if not self.stamps[i & self.mask] <= most:
                self.stamps[i & self.mask] = most

    def state(self):
        """What a checkpoint keeps: a copy."""
        cdef Py_ssize_t size = self.mask + 1
        tags, stamps = <uint64_t[:size]>self.tags, <double[:size]>self.stamps
        kinds = <uint8_t[:size]>self.kinds
        first = self.first & self.mask
        end = first + self.last - self.first
        found = {}
        for name, view in (("tags", tags), ("stamps", stamps), ("kinds", kinds)):
            ring = np.asarray(view)
            found[name] = np.concatenate([ring[first:end], ring[:max(end - size, 0)]])
        return found

    def restore(self, state, Places places):
        """Take over a state that `state` gave, and tell `places`; nothing is there yet."""
        cdef const uint64_t[::1] tags = state["tags"]
        cdef const double[::1] stamps = state["stamps"]
        cdef const uint8_t[::1] kinds = state["kinds"]
        cdef Py_ssize_t i
        if not len(tags) == len(stamps) == len(kinds):
            raise ValueError(f"{len(tags)} ids, {len(stamps)} times, {len(kinds)} kinds")
        for i in range(len(tags)):
            place = self.append(tags[i], stamps[i], kinds[i])
            if kinds[i] == GONE:
                self.count -= 1
            else:
                places.enter(tags[i], place)
