cimport cython
from libc.stdint cimport int64_t, uint8_t, uint64_t

from streamlearn.row cimport prefetch

cdef enum:  # what became of an id
    DONE
    GUESSED  # learnt with the label of a time-out, and its features kept to be corrected
    GONE  # it is elsewhere now

cdef enum:
    SIDE_BIT = 31  # of a place: it is one of these, not of what waits
    AHEAD = 16  # ids


cdef inline bint is_settled(int64_t place) noexcept:
    """Whether what is there was learnt."""
    return place >> SIDE_BIT


@cython.final
cdef class Settled:
    cdef readonly Py_ssize_t count
    cdef int64_t first, last  # of all that ever were, by number
    cdef Py_ssize_t mask
    cdef uint64_t* tags
    cdef double* stamps
    cdef uint8_t* kinds

    cdef int64_t append(self, uint64_t tag, double stamp, uint8_t kind) except -1
    cdef void remove(self, int64_t place) noexcept
    cdef int64_t oldest(self) noexcept
    cdef int widen(self, Py_ssize_t n) except -1
    cdef void restamp(self, double most) noexcept

    cdef inline uint64_t tag(self, int64_t place) noexcept:
        """The hash of an id."""
        return self.tags[place & self.mask]

    cdef inline double stamp(self, int64_t place) noexcept:
        """When an id was settled."""
        return self.stamps[place & self.mask]

    cdef inline uint8_t kind(self, int64_t place) noexcept:
        """What became of an id."""
        return self.kinds[place & self.mask]

    cdef inline uint64_t tag_ahead(self, int64_t place) noexcept:
        """The hash of an id that goes some time after this one."""
        return self.tags[(place + AHEAD) & self.mask]
