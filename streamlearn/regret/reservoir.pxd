cimport cython
from libc.stdint cimport int64_t, uint64_t

from streamlearn.core.random cimport GOLDEN_GAMMA, mix64
from streamlearn.core.row cimport Row


cdef inline void* at(array):
    return <void*><size_t>array.ctypes.data


@cython.final
cdef class Reservoir:
    cdef readonly object memory_bytes
    cdef readonly uint64_t seed
    cdef readonly Py_ssize_t width
    # positions whose key is at most this are in the sample
    cdef readonly uint64_t threshold
    cdef public bint failed
    # it is expected to hold `LARGE` events or more
    cdef readonly bint large
    # how many learners record their losses of the sampled events
    cdef public Py_ssize_t learners
    # sealed segments: (bytes, rows) in the order of the events
    cdef list sealed
    cdef Py_ssize_t cursor, segment_size
    cdef object tail
    cdef char* text
    cdef Py_ssize_t used, room, tail_rows
    cdef Py_ssize_t sealed_bytes, rows
    cdef void record(
        self, int64_t position, Row* row, const double* y, double weight
    ) noexcept nogil
    cdef int seal(self, Py_ssize_t needed) except -1
    cdef int shrink(self) except -1
    cdef int note_size(self) except -1
    cdef int compact_next(self) except -1

    cdef inline bint has(self, int64_t position) noexcept nogil:
        """Return whether the event at this position is in the sample."""
        return mix64(self.seed + <uint64_t>position * GOLDEN_GAMMA) <= self.threshold
