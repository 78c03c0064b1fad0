cimport cython
from cpython.list cimport PyList_GET_ITEM
from libc.stdint cimport int64_t, uint8_t, uint64_t

from streamlearn.late.places cimport Places

cdef enum:  # what became of an id
    DONE
    GUESSED  # learned with the label of a time-out, and its features kept to be corrected
    GONE  # it is elsewhere now

cdef enum:
    SIDE_BIT = 31  # of a place: it is one of these, not of what waits
    AHEAD = 16  # ids
    BITS = 12
    SIZE = 1 << BITS  # ids of a block
    NUMBERS = (1 << 30) - 1  # of a place: the last bits of an id's number


cdef inline bint is_settled(int64_t place) noexcept:
    """Whether what is there was learned."""
    return place >> SIDE_BIT


@cython.final
cdef class IdBlock:
    cdef object arrays  # what owns the memory below
    cdef uint64_t* tags
    cdef double* stamps
    cdef uint8_t* kinds
    cdef int own(self, tags, stamps, kinds) except -1


@cython.final
cdef class ResolvedIds:
    cdef readonly Py_ssize_t count
    cdef int64_t first, last  # of all that ever were, by number
    cdef int64_t base  # the number of the first of the first block
    cdef list blocks

    cdef int64_t append(self, uint64_t tag, double stamp, uint8_t kind) except -1
    cdef int remove(self, int64_t place) except -1
    cdef int64_t oldest(self)
    cdef int restamp(self, double most) except -1

    cdef inline IdBlock block(self, int64_t place):
        """The block that an id is in."""
        return <IdBlock>PyList_GET_ITEM(self.blocks, (place - self.base & NUMBERS) >> BITS)

    cdef inline uint64_t tag(self, int64_t place) noexcept:
        """The hash of an id."""
        return self.block(place).tags[place & (SIZE - 1)]

    cdef inline uint64_t tag_ahead(self) noexcept:
        """The hash of an id that is soon the oldest."""
        return self.tag(min(self.first + AHEAD, self.last - 1))

    cdef inline double stamp(self, int64_t place) noexcept:
        """When an id was settled."""
        return self.block(place).stamps[place & (SIZE - 1)]

    cdef inline uint8_t kind(self, int64_t place) noexcept:
        """What became of an id."""
        return self.block(place).kinds[place & (SIZE - 1)]
