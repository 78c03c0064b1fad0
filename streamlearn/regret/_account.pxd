cimport cython

from streamlearn.engine.watcher cimport Watcher
from streamlearn.regret._reservoir cimport Reservoir


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
