"""A hash table from ids to the places of their entries, with linear probing.

A cell is the upper half of a hash and a place, 32 bits each. Several places may share the same
half, so the caller compares the hash of the entry itself.
"""

cimport cython
from libc.stdint cimport int64_t, uint64_t

import numpy as np

cdef inline uint64_t cell_value(uint64_t tag, int64_t place) noexcept:
    return tag >> 32 << 32 | <uint64_t>(place + 1)  # so that no cell in use is 0


@cython.final
cdef class IdTable:
    """Places by hash; a secret seed of 64 bits prevents forged collisions."""

    def __init__(self, seed):
        self.seed = seed
        self.grow(64)

    cdef int add(self, uint64_t tag, int64_t place) except -1:
        """Add a place; at most two thirds of the cells are used."""
        if 3 * self.count >= 2 * <Py_ssize_t>self.mask:
            self.grow(2 * <Py_ssize_t>self.mask)
        self.put(cell_value(tag, place))
        self.count += 1
        return 0

    cdef void move(self, uint64_t tag, int64_t old, int64_t new) noexcept:
        """Record that an entry has moved."""
        self.cell[self.cell_of(tag, old)] = cell_value(tag, new)

    cdef void remove(self, uint64_t tag, int64_t place) noexcept:
        """Remove a place; move later cells of its chain up."""
        cdef uint64_t hole = self.cell_of(tag, place), i = hole, home
        self.count -= 1
        while True:
            i = (i + 1) & self.mask
            if self.cell[i] == 0:
                break
            home = (self.cell[i] >> 32) & self.mask
            if ((i - home) & self.mask) >= ((i - hole) & self.mask):
                self.cell[hole] = self.cell[i]
                hole = i
        self.cell[hole] = 0

    cdef uint64_t cell_of(self, uint64_t tag, int64_t place) noexcept:
        cdef uint64_t i = tag >> 32 & self.mask
        while self.cell[i] != cell_value(tag, place):
            i = (i + 1) & self.mask
        return i

    cdef void put(self, uint64_t cell) noexcept:
        cdef uint64_t i = (cell >> 32) & self.mask
        while self.cell[i]:
            i = (i + 1) & self.mask
        self.cell[i] = cell

    cdef int grow(self, Py_ssize_t n) except -1:
        """Grow to at least n cells."""
        old = self.cells  # keeps the memory that is read below
        cdef Py_ssize_t k, size = 64, length = 0 if old is None else len(old)
        cdef uint64_t* before = self.cell
        while size < n:
            size *= 2
        self.cells = np.zeros(size, dtype=np.uint64)
        self.cell = <uint64_t*><size_t>self.cells.ctypes.data
        self.mask = <uint64_t>(size - 1)
        for k in range(length):
            if before[k]:
                self.put(before[k])
        return 0
