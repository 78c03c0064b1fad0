cimport cython

from streamlearn.core.row cimport Row


cdef inline void* at(array):
    return <void*><size_t>array.ctypes.data


@cython.final
cdef class Reservoir:
    cdef readonly Py_ssize_t capacity, width
    cdef readonly long long seen, next
    cdef readonly bint failed
    cdef double threshold, inverse_log
    cdef unsigned long long random
    # the log: `log_used` of `log_size` entries are written
    cdef object slot_array, value_array
    cdef int* slots
    cdef double* values
    cdef Py_ssize_t log_used, log_size, header
    # where the row of each place is in the log
    cdef long long* starts
    cdef Py_ssize_t filled  # places
    cdef double uniform(self) noexcept nogil
    cdef void skip(self) noexcept nogil
    cdef void propose(self, double threshold) noexcept nogil
    cdef long long wait(self) noexcept nogil
    cdef void offer(
        self, Row* row, const double* y, double weight, long long passed
    ) noexcept nogil
    cdef void admit(self, Row* row, const double* y, double weight) noexcept nogil
    cdef void write(self, Py_ssize_t k, Row* row, const double* y, double weight) noexcept nogil
    cdef int compact(self, Py_ssize_t n) except -1
    cdef bint is_shared(self)
    cdef int rewrite_log(self, slots, values) except -1
