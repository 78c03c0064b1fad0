"""Resolved ids, whose events were learned, in order.

Each has its hash, the time when it was resolved, and its kind, in blocks of 4096. Only the kinds
of a full block can change, so a checkpoint shares the rest.
"""

cimport cython
from libc.stdint cimport int64_t, uint8_t, uint64_t

from streamlearn.late.id_table cimport IdTable

import numpy as np


@cython.final
cdef class IdBlock:
    """Consecutive resolved ids."""

    def __cinit__(self):
        self.own(np.empty(SIZE, np.uint64), np.empty(SIZE), np.empty(SIZE, np.uint8))

    cdef int own(self, tags, resolved_at, kinds) except -1:
        """Use these arrays for the ids."""
        self.arrays = (tags, resolved_at, kinds)
        self.tags = <uint64_t*><size_t>tags.ctypes.data
        self.resolved_at = <double*><size_t>resolved_at.ctypes.data
        self.kinds = <uint8_t*><size_t>kinds.ctypes.data
        return 0


@cython.final
cdef class ResolvedIds:
    """Resolved ids; a place is the lower bits of an id's number."""

    def __cinit__(self):
        self.blocks = []

    cdef int64_t append(self, uint64_t tag, double resolved_at, uint8_t kind) except -1:
        """Append an id, and return its place."""
        cdef int64_t place = self.last & NUMBERS
        cdef IdBlock last
        if self.last - self.base == len(self.blocks) * <int64_t>SIZE:
            self.blocks.append(IdBlock())
        last = self.block(place)
        last.tags[place & (SIZE - 1)] = tag
        last.resolved_at[place & (SIZE - 1)] = resolved_at
        last.kinds[place & (SIZE - 1)] = kind
        self.last += 1
        self.count += 1
        return <int64_t>1 << SIDE_BIT | place

    cdef int remove(self, int64_t place) except -1:
        """Remove an id."""
        self.block(place).kinds[place & (SIZE - 1)] = REMOVED
        self.count -= 1
        return 0

    cdef int64_t oldest(self):
        """Return the place of the oldest id; -1 if there is none."""
        while self.first < self.last:
            if self.first - self.base == SIZE:
                del self.blocks[0]
                self.base = self.first
            if self.kind(self.first) != REMOVED:
                return <int64_t>1 << SIDE_BIT | (self.first & NUMBERS)
            self.first += 1
        return -1

    cdef int clamp_times(self, double most) except -1:
        """Set later and unknown times to this time."""
        cdef int64_t i
        cdef IdBlock one
        for one in self.blocks:  # a checkpoint may share the old ones
            tags, resolved_at, kinds = one.arrays
            one.own(tags, resolved_at.copy(), kinds)
        for i in range(self.first, self.last):
            if not self.resolved_at(i) <= most:
                self.block(i).resolved_at[i & (SIZE - 1)] = most
        return 0

    def state(self):
        """Return the blocks, the oldest first; data that no longer changes is shared."""
        cdef int64_t at = self.base
        cdef IdBlock one
        found = []
        for one in self.blocks:
            a, b = max(self.first - at, 0), min(self.last - at, <int64_t>SIZE)
            tags, resolved_at, kinds = (array[a:b] for array in one.arrays)
            if b < SIZE:
                tags, resolved_at = tags.copy(), resolved_at.copy()
            found.append({"tags": tags, "resolved_at": resolved_at, "kinds": kinds.copy()})
            at += SIZE
        return found

    def restore(self, state, IdTable id_table):
        """Resume from `state`, and fill `id_table`; both must be empty."""
        cdef const uint64_t[::1] tags
        cdef const double[::1] resolved_at
        cdef const uint8_t[::1] kinds
        cdef Py_ssize_t i
        for saved in state:
            tags, resolved_at, kinds = saved["tags"], saved["resolved_at"], saved["kinds"]
            if not len(tags) == len(resolved_at) == len(kinds):
                raise ValueError(f"{len(tags)} ids, {len(resolved_at)} times, {len(kinds)} kinds")
            for i in range(len(tags)):
                place = self.append(tags[i], resolved_at[i], kinds[i])
                if kinds[i] == REMOVED:
                    self.count -= 1
                else:
                    id_table.add(tags[i], place)
