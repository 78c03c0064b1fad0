"""Ids that are done with, in the order in which they were settled.

Of each there is the hash, when it was settled, and what became of it, in blocks of 4096. One that
is full never changes again but for the latter, so a checkpoint shares the rest.
"""

cimport cython
from libc.stdint cimport int64_t, uint8_t, uint64_t

from streamlearn.late.places cimport Places

import numpy as np

cdef enum:
    EACH = 17  # bytes of an id


@cython.final
cdef class IdBlock:
    """Ids that were settled one after the other."""

    def __cinit__(self):
        self.own(np.empty(SIZE, np.uint64), np.empty(SIZE), np.empty(SIZE, np.uint8))

    cdef int own(self, tags, stamps, kinds) except -1:
        """The ids are in these arrays."""
        self.arrays = (tags, stamps, kinds)
        self.tags = <uint64_t*><size_t>tags.ctypes.data
        self.stamps = <double*><size_t>stamps.ctypes.data
        self.kinds = <uint8_t*><size_t>kinds.ctypes.data
        return 0


@cython.final
cdef class ResolvedIds:
    """An id's place is its number among all that were settled, less its upper bits."""

    def __cinit__(self):
        self.blocks = []

    def __sizeof__(self):
        return object.__sizeof__(self) + len(self.blocks) * SIZE * EACH

    cdef int64_t append(self, uint64_t tag, double stamp, uint8_t kind) except -1:
        """One more; its place."""
        cdef int64_t place = self.last & NUMBERS
        cdef IdBlock last
        if self.last - self.base == len(self.blocks) * <int64_t>SIZE:
            self.blocks.append(IdBlock())
        last = self.block(place)
        last.tags[place & (SIZE - 1)] = tag
        last.stamps[place & (SIZE - 1)] = stamp
        last.kinds[place & (SIZE - 1)] = kind
        self.last += 1
        self.count += 1
        return <int64_t>1 << SIDE_BIT | place

    cdef int remove(self, int64_t place) except -1:
        """One goes."""
        self.block(place).kinds[place & (SIZE - 1)] = GONE
        self.count -= 1
        return 0

    cdef int64_t oldest(self):
        """The place of the one that was settled first; -1: there is none."""
        while self.first < self.last:
            if self.first - self.base == SIZE:
                del self.blocks[0]
                self.base = self.first
            if self.kind(self.first) != GONE:
                return <int64_t>1 << SIDE_BIT | (self.first & NUMBERS)
            self.first += 1
        return -1

    cdef int restamp(self, double most) except -1:
        """None was settled later than this; those of no known time were settled now."""
        cdef int64_t i
        cdef IdBlock one
        for one in self.blocks:  # a checkpoint may share the old ones
            tags, stamps, kinds = one.arrays
            one.own(tags, stamps.copy(), kinds)
        for i in range(self.first, self.last):
            if not self.stamp(i) <= most:
                self.block(i).stamps[i & (SIZE - 1)] = most
        return 0

    def state(self):
        """Blocks in their order, from the oldest on; what changes no more is shared, not copied."""
        cdef int64_t at = self.base
        cdef IdBlock one
        found = []
        for one in self.blocks:
            a, b = max(self.first - at, 0), min(self.last - at, <int64_t>SIZE)
            tags, stamps, kinds = (array[a:b] for array in one.arrays)
            if b < SIZE:
                tags, stamps = tags.copy(), stamps.copy()
            found.append({"tags": tags, "stamps": stamps, "kinds": kinds.copy()})
            at += SIZE
        return found

    def restore(self, state, Places places):
        """Take over a state that `state` gave, and tell `places`; nothing is there yet."""
        cdef const uint64_t[::1] tags
        cdef const double[::1] stamps
        cdef const uint8_t[::1] kinds
        cdef Py_ssize_t i
        for saved in state:
            tags, stamps, kinds = saved["tags"], saved["stamps"], saved["kinds"]
            if not len(tags) == len(stamps) == len(kinds):
                raise ValueError(f"{len(tags)} ids, {len(stamps)} times, {len(kinds)} kinds")
            for i in range(len(tags)):
                place = self.append(tags[i], stamps[i], kinds[i])
                if kinds[i] == GONE:
                    self.count -= 1
                else:
                    places.enter(tags[i], place)
