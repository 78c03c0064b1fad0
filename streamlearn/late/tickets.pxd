cimport cython
from libc.stdint cimport int32_t


@cython.final
cdef class TicketPool:
    cdef readonly Py_ssize_t count
    cdef Py_ssize_t free_count, released_count, capacity
    cdef int32_t* free  # may be count again
    cdef int32_t* released  # once the rows are learned
    cdef int32_t acquire(self) except -1
    cdef void release(self, int32_t ticket) noexcept
    cdef void recycle(self) noexcept
