cimport cython
from cpython.list cimport PyList_GET_ITEM
from libc.stdint cimport int64_t, uint8_t, uint64_t

from streamlearn.late.id_table cimport IdTable

cdef enum:  # the kind of a resolved id
    RESOLVED
    CORRECTABLE  # learned at a timeout; its features are kept for a correction
    REMOVED  # no longer here

cdef enum:
    SIDE_BIT = 31  # set in places of resolved ids, not in those of held entries
    AHEAD = 16  # ids to prefetch
    BITS = 12
    SIZE = 1 << BITS  # ids of a block
    NUMBERS = (1 << 30) - 1  # the lower bits of an id's number, which are its place


cdef inline bint is_resolved(int64_t place) noexcept:
    """Return whether this is the place of a resolved id."""
    return place >> SIDE_BIT


@cython.final
cdef class IdBlock:
    cdef object arrays  # owns the memory below
    cdef uint64_t* tags
    cdef double* resolved_at
    cdef uint8_t* kinds
    cdef int own(self, tags, resolved_at, kinds) except -1


@cython.final
cdef class ResolvedIds:
    cdef readonly Py_ssize_t count
    cdef int64_t first, last  # numbers, counted over all ids ever
    cdef int64_t base  # the number of the first block's first id
    cdef list blocks

    cdef int64_t append(self, uint64_t tag, double resolved_at, uint8_t kind) except -1
    cdef int remove(self, int64_t place) except -1
    cdef int64_t oldest(self)
    cdef int clamp_times(self, double most) except -1

    cdef inline IdBlock block(self, int64_t place):
        """Return the block of an id."""
        return <IdBlock>PyList_GET_ITEM(self.blocks, (place - self.base & NUMBERS) >> BITS)

    cdef inline uint64_t tag(self, int64_t place) noexcept:
        """Return the hash of an id."""
        return self.block(place).tags[place & (SIZE - 1)]

    cdef inline uint64_t tag_ahead(self) noexcept:
        """Return the hash of an id that is soon the oldest."""
        return self.tag(min(self.first + AHEAD, self.last - 1))

    cdef inline double resolved_at(self, int64_t place) noexcept:
        """Return when an id was resolved."""
        return self.block(place).resolved_at[place & (SIZE - 1)]

    cdef inline uint8_t kind(self, int64_t place) noexcept:
        """Return the kind of an id."""
        return self.block(place).kinds[place & (SIZE - 1)]
