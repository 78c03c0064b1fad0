cimport cython

from streamlearn.engine.watcher cimport Watcher
from streamlearn.row cimport Row


cdef struct Place:  # of a row in the sample
    long long start
    int length
    int room  # how long a row fits in there
    double weight


@cython.final
cdef class Reservoir:
    cdef readonly Py_ssize_t capacity, width
    cdef readonly long long seen, next
    cdef readonly bint failed
    cdef double threshold
    cdef unsigned long long random
    cdef object slot_array, value_array
    cdef int* slots
    cdef double* values
    cdef Py_ssize_t used, room, live
    cdef Place* table
    cdef double* labels
    cdef Py_ssize_t places
    cdef double uniform(self) noexcept nogil
    cdef void skip(self) noexcept nogil
    cdef int claim(self) except -1
    cdef int reserve(self, Py_ssize_t n) except -1
    cdef void admit(self, Row* row, const double* y, double weight) noexcept nogil
    cdef long long wait(self) noexcept nogil
    cdef void offer(
        self, Row* row, const double* y, double weight, long long passed
    ) noexcept nogil
    cdef bint lent(self) noexcept nogil
    cdef void place(self, Py_ssize_t k, Row* row, const double* y, double weight) noexcept nogil


@cython.final
cdef class Account(Watcher):
    cdef Reservoir sample
    cdef readonly object loss
    cdef bint scalar
    cdef readonly Py_ssize_t outputs
    # without the events that are noted only
    cdef double past, weight_past, penalty_past
    cdef double penalty_sum, penalty_rest
    # how many of those noted the sample knows of
    cdef int offered
    # Psi(w_t) as it was known last
    cdef readonly double penalty, next_look
    cdef readonly bint exact
    cdef public object look
    cdef public object wake
    cdef double due
    cdef void add_value(self, double value) noexcept nogil
    cdef int next_stop(self) noexcept nogil
    cdef double last_weights(self) noexcept nogil
    cdef double last_penalties(self) noexcept nogil
    cdef int peek(self) except -1
    cdef int rouse(self) except -1
