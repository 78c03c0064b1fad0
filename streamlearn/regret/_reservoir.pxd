cimport cython

from streamlearn.engine.watcher cimport Watcher
from streamlearn.losses.total cimport Total
from streamlearn.row cimport Row


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
    cdef long long* starts
    cdef int* lengths
    cdef double* weights
    cdef double* labels
    cdef Py_ssize_t places
    cdef double uniform(self) noexcept nogil
    cdef void skip(self) noexcept nogil
    cdef int claim(self) except -1
    cdef int reserve(self, Py_ssize_t n) except -1
    cdef void admit(self, Row* row, const double* y, double weight) noexcept nogil
    cdef void offer(self, Row* row, const double* y, double weight) noexcept nogil
    cdef void place(self, Py_ssize_t k, Row* row, const double* y, double weight) noexcept nogil


@cython.final
cdef class Account(Watcher):
    cdef readonly Reservoir reservoir
    cdef readonly object loss
    cdef bint scalar
    cdef readonly Py_ssize_t outputs
    cdef readonly double events, weight
    cdef Total losses
    cdef double penalty_sum, penalty_rest
    # Psi(w_t) as it was known last, and for how many events the sum of it stands
    cdef readonly double penalty, penalty_events, next_look
    cdef readonly bint exact
    cdef public object look
    # called when so many events were seen; it gives the next such number
    cdef public object wake
    cdef public double due
    cdef int peek(self) except -1
    cdef int rouse(self) except -1
