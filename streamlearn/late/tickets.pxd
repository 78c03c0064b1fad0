cimport cython
from libc.stdint cimport int32_t


@cython.final
cdef class Tickets:
    cdef readonly Py_ssize_t given
    cdef Py_ssize_t frees, backs, room
    cdef int32_t* free  # may be given again
    cdef int32_t* back  # once the rows are learned
    cdef int32_t give(self) except -1
    cdef void take_back(self, int32_t ticket) noexcept
    cdef void settle(self) noexcept
