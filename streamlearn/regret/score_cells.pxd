cimport cython
from libc.stdint cimport int64_t, uint16_t, uint64_t
from libc.string cimport memcpy

from streamlearn.losses.loss cimport PendingEvents
from streamlearn.regret.reservoir cimport Reservoir


cdef enum:
    DIGITS = 3  # bits of the fraction
    SIZES = 64 << DIGITS  # from 2^-32 to 2^32; others are in the first and the last cell
    CELLS = 4 * SIZES
    SMALLEST = (1023 - 32) << DIGITS


cdef inline uint16_t cell_of(double score, bint positive) noexcept nogil:
    """Return the cell of a score, and of a label that is positive or not."""
    cdef uint64_t bits
    memcpy(&bits, &score, 8)
    cdef int64_t size = <int64_t>(bits >> (52 - DIGITS) & ((1 << (11 + DIGITS)) - 1)) - SMALLEST
    size = min(max(size, 0), <int64_t>SIZES - 1)
    return <uint16_t>(<uint64_t>size << 2 | bits >> 63 << 1 | <uint64_t>positive)


@cython.final
cdef class ScoreCells:
    cdef Reservoir reservoir
    cdef bint of_residuals
    cdef double weights[CELLS]
    # the cells of the sampled events and slopes there: `sampled` of them, with their positions
    cdef object place_array, cell_array, slope_array
    cdef int64_t* places
    cdef uint16_t* cells
    cdef float* slopes
    cdef Py_ssize_t sampled, room
    cdef uint16_t cell_at(self, const PendingEvents* events, int i) noexcept nogil
    cdef void add(self, uint16_t cell, double weight) noexcept nogil
    cdef void count(self, const PendingEvents* events) noexcept nogil
    cdef void sample(self, int64_t place, uint16_t cell, double slope) noexcept nogil
    cdef int make_room(self) except -1
    cdef int use_samples(self, places, cells, slopes) except -1
